"""Some rows of a batch, on which the reference gives the same rows of its outputs.

For what cannot be computed on the whole: a workload whose float64 copy does not fit. Found by
trial, since no shape tells whether rows are independent of each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch

from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.tensors.relative_errors import largest_error

_LARGEST_ROW: Final = 8
"""Times as many elements as are to be looked at; a larger row is none to compute in float64."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSlice:
    """Rows of every input and output whose first axis is the batch."""

    start: int
    end: int
    size: int
    """Rows of the whole batch."""

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the rows of an output, or of an input that has them; others as they are."""
        return tensor[self.start : self.end] if _rows(tensor) == self.size else tensor

    def inputs(self, input_set: InputSet) -> tuple[torch.Tensor, ...]:
        """Return the inputs, cut."""
        return tuple(map(self.of, input_set.inputs))


def batch_slice(
    outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], *, elements: int, seed: int
) -> BatchSlice | None:
    """Return rows to look at, as many as hold about `elements` elements; None: there is no batch.

    The secret seed tells where they begin.
    """
    sizes = {_rows(output) for output in outputs}
    size = sizes.pop()
    if sizes or size < 2 or not any(_rows(tensor) == size for tensor in inputs):
        return None
    batched = [tensor for tensor in (*inputs, *outputs) if _rows(tensor) == size]
    row_elements = max(tensor.numel() // size for tensor in batched)
    if row_elements > _LARGEST_ROW * elements:
        return None
    count = min(max(elements // max(row_elements, 1), 1), size)
    start = seed % (size - count + 1)
    return BatchSlice(start=start, end=start + count, size=size)


def is_independent(
    rows: BatchSlice, input_set: InputSet, outputs: Sequence[torch.Tensor], *, tolerance: float
) -> bool:
    """Return whether the reference gives the same rows when it sees no others.

    Raises:
        TaskInvalidError: it does not run on them.
    """
    alone = input_set.run(dtype=torch.float32, inputs=rows.inputs(input_set))
    return all(
        a.shape == rows.of(whole).shape and largest_error(a, rows.of(whole)) <= tolerance
        for a, whole in zip(alone, outputs, strict=True)
        if whole.is_floating_point()
    )


def _rows(tensor: torch.Tensor) -> int:
    return tensor.shape[0] if tensor.ndim else 0
