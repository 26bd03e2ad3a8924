"""Errors of an output in the units of the tolerance: |a - e| / (scale of the row + |e|)."""

from collections.abc import Iterator
from typing import Final

import torch

from evaluator_svc.judge.tensors.scales import group_scale, groups_of, row_chunks

_CHUNK_ELEMENTS: Final = {"cpu": 1 << 17, "cuda": 1 << 24}
"""Elements worked on at a time: several temporaries of them in float64, which a CPU's cache is to
hold."""


def relative_errors(
    actual: torch.Tensor, exact: torch.Tensor, scale: torch.Tensor | None = None
) -> Iterator[torch.Tensor]:
    """Yield the errors in float64 chunks of lines.

    NaN and infinities count nothing where both have them, and 1 where `actual` alone has.

    Args:
        actual: What is looked at.
        exact: What it should be.
        scale: As `group_scale(exact)` gives it, where that is known.
    """
    groups = groups_of(tuple(exact.shape))
    scale, row = (group_scale(exact) if scale is None else scale).double(), 0
    size = _CHUNK_ELEMENTS[exact.device.type]
    lines = (row_chunks(groups.lines(tensor), size) for tensor in (actual, exact))
    parts = zip(*lines, strict=True)
    for a, e in parts:
        exactly = e.double()
        error = (a.double() - exactly).abs_()
        error /= exactly.abs().add_(groups.scale_of(scale, row, row + len(e)))
        row += len(e)
        yield error.nan_to_num_(nan=0.0, posinf=1.0)


def largest_error(actual: torch.Tensor, exact: torch.Tensor) -> float:
    """Return the largest of the errors, 0 for an empty output."""
    return max((float(part.max()) for part in relative_errors(actual, exact)), default=0.0)
