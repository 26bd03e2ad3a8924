"""Errors of an output in the units of the tolerance: |a - e| / (scale of the row + |e|).

Knows nothing of where the values come from.
"""

from collections.abc import Iterator
from typing import Final

import torch

from evaluator_svc.judge.verdict.compare import group_scale, group_shape, row_chunks

_CHUNK_ELEMENTS: Final = {"cpu": 1 << 20, "cuda": 1 << 24}
"""Elements worked on at a time: several temporaries of them in float64."""


def relative_errors(actual: torch.Tensor, exact: torch.Tensor) -> Iterator[torch.Tensor]:
    """Yield the errors in `(rows, inner)` float64 chunks.

    NaN and infinities count nothing where both have them, and 1 where `actual` alone has.
    """
    shape = group_shape(tuple(exact.shape))
    scale, row = group_scale(exact).double(), 0
    size = _CHUNK_ELEMENTS[exact.device.type]
    parts = zip(
        row_chunks(actual.reshape(shape), size), row_chunks(exact.reshape(shape), size), strict=True
    )
    for a, e in parts:
        exactly = e.double()
        error = a.double().sub_(exactly).abs_()
        error /= exactly.abs().add_(scale[row : row + len(e), None])
        row += len(e)
        yield error.nan_to_num_(nan=0.0, posinf=1.0)


def largest_error(actual: torch.Tensor, exact: torch.Tensor) -> float:
    """Return the largest of the errors, 0 for an empty output."""
    return max((float(part.max()) for part in relative_errors(actual, exact)), default=0.0)
