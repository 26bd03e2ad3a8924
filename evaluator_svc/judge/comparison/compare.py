"""Comparison of one output with its expected values, natively and element by element.

The bound of an element is atol * scale + rtol * |expected|. The scale is the root mean square of
the element's row (of its image, for batches of images), since one output can span ten orders of
magnitude; of its column where rows are a few elements, as those of points and angles; 1 where the
tolerance was given by hand.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import torch

from evaluator_svc.judge.memory.judge_memory import JudgeMemory
from evaluator_svc.judge.reference.formats import computable
from evaluator_svc.judge.reference.name_table import dtype_name
from kernel_foundry.domain.task import Tolerance
from kernel_foundry_native import _core as native

CHUNK_ELEMENTS: Final = 1 << 26
"""Most elements that are worked on with temporaries."""

_MIN_GROUP: Final = 16
"""Fewest elements with a scale of their own: the scale of a few is as noisy as they are."""

_SCALE_FLOOR: Final = 1e-6
"""Least scale of a row, in units of the whole output's: a dead row still has rounding noise."""

_COLUMN_FLOOR: Final = 1e-3
"""The same of a column: what cancels there had the size of its row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """Which elements of an output share a scale: element i is of group i // inner % count."""

    count: int
    inner: int
    """Neighbours in memory; 1 for columns."""

    @property
    def is_columns(self) -> bool:
        """Whether each group is a column of the lines."""
        return self.inner == 1 and self.count > 1

    def lines(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a tensor as matrix: each line is a group, or has an element of each."""
        return tensor.reshape(-1, self.count if self.is_columns else self.inner)

    def scale_of(self, scale: torch.Tensor, start: int, stop: int) -> torch.Tensor:
        """Return the groups' scales, to be broadcast over some of the lines."""
        return scale[None, :] if self.is_columns else scale[start:stop, None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedOutput:
    """Expected values of one output, ready for comparison."""

    tensor: torch.Tensor
    """Contiguous."""
    scale: torch.Tensor | None
    """`(groups,)` float32; None: 1 everywhere."""
    groups: Groups
    memory: JudgeMemory
    """Where all of this lies; it compares."""

    @property
    def is_exact(self) -> bool:
        """True for integers and booleans, which have no tolerance."""
        return not self.tensor.is_floating_point()

    def bound_at(self, places: torch.Tensor, tolerance: Tolerance) -> torch.Tensor:
        """Return the largest allowed error at flat indices, float32."""
        values = self.tensor.reshape(-1)[places]
        if self.is_exact:
            return torch.zeros(values.shape, device=values.device)
        bound = values.float().abs().mul_(tolerance.rtol)
        if self.scale is None:
            return bound.add_(tolerance.atol)
        group = places // self.groups.inner % self.groups.count
        return bound.add_(tolerance.atol * self.scale[group])

    def is_finite(self) -> bool:
        """Return whether all values are finite, looked at in pieces."""
        if self.is_exact:
            return True
        parts = torch.split(self.tensor.reshape(-1), CHUNK_ELEMENTS)
        return all(all_finite(computable(part)) for part in parts)

    def bound(self, tolerance: Tolerance) -> torch.Tensor:
        """Return the largest allowed error of each element, in the output's shape, float32."""
        if self.is_exact:
            return torch.zeros(self.tensor.shape, device=self.tensor.device)
        bound = self.tensor.float().abs().mul_(tolerance.rtol)
        return bound.add_(tolerance.atol * self.scales())

    def scales(self) -> torch.Tensor:
        """Return the scale of each element, float32, to be broadcast over the output's shape."""
        if self.scale is None:
            return torch.ones((), device=self.tensor.device)
        lines = self.groups.lines(self.tensor)
        scale = self.groups.scale_of(self.scale, 0, len(lines))
        return scale.expand(lines.shape).reshape(self.tensor.shape)


def all_finite(tensor: torch.Tensor) -> bool:
    """Return whether all values are finite; a sum that is one says so at once."""
    return bool(tensor.sum().isfinite()) or bool(tensor.isfinite().all())


def expect(tensor: torch.Tensor, *, is_scaled: bool, memory: JudgeMemory) -> ExpectedOutput:
    """Return `tensor`, which lies in `memory`, with the scale of each of its groups."""
    is_scaled = is_scaled and tensor.is_floating_point() and tensor.numel() > 0
    return ExpectedOutput(
        tensor=tensor,
        scale=group_scale(tensor) if is_scaled else None,
        groups=groups_of(tuple(tensor.shape)),
        memory=memory,
    )


def group_scale(tensor: torch.Tensor) -> torch.Tensor:
    """Return the root mean square of each group of a floating-point tensor, float32.

    Works in pieces of `CHUNK_ELEMENTS`, so that large tensors need no large temporaries.
    """
    groups = groups_of(tuple(tensor.shape))
    lines = groups.lines(tensor)
    axis = 0 if groups.is_columns else 1
    norms = [torch.linalg.vector_norm(p.float(), dim=axis) for p in row_chunks(lines)]
    norm = torch.stack(norms).norm(dim=0) if groups.is_columns else torch.cat(norms)
    scale = norm.div_(math.sqrt(lines.shape[axis])).nan_to_num_(nan=0.0, posinf=0.0)
    whole = math.sqrt(float(scale.double().square().mean()))
    floor = _COLUMN_FLOOR if groups.is_columns else _SCALE_FLOOR
    return scale.clamp_(min=max(floor * whole, 1e-35)).contiguous()


def row_chunks(grouped: torch.Tensor, elements: int = CHUNK_ELEMENTS) -> Iterator[torch.Tensor]:
    """Yield views of consecutive rows, each of at most `elements` elements or a single row."""
    rows = max(elements // max(grouped.shape[1], 1), 1)
    for start in range(0, len(grouped), rows):
        yield grouped[start : start + rows]


def groups_of(shape: tuple[int, ...]) -> Groups:
    """Return the rows of a matrix, the channels of images (rank 4 and up), or short columns.

    Where no rows but the whole would be a group, and the last axes have few places, each of these
    is a group of its own.
    """
    axis = 2 if len(shape) >= 4 else len(shape) - 1
    while axis > 0 and math.prod(shape[axis:]) < _MIN_GROUP:
        axis -= 1
    if axis > 0:
        return Groups(count=math.prod(shape[:axis]), inner=max(math.prod(shape[axis:]), 1))
    size, columns = math.prod(shape), 1
    for length in reversed(shape):
        if columns * length >= _MIN_GROUP:
            break
        columns *= length
    if columns > 1 and size >= _MIN_GROUP * columns:
        return Groups(count=columns, inner=1)
    return Groups(count=1, inner=max(size, 1))


def compare_output(
    address: int, expected: ExpectedOutput, tolerance: Tolerance
) -> native.Comparison:
    """Compare the values at `address` with `expected`; integers must be equal."""
    scale = expected.scale
    return expected.memory.compare(
        actual=address,
        expected=expected.tensor.data_ptr(),
        dtype=dtype_name(expected.tensor.dtype),
        count=expected.tensor.numel(),
        rtol=0.0 if expected.is_exact else tolerance.rtol,
        atol=0.0 if expected.is_exact else tolerance.atol,
        scale=0 if scale is None else scale.data_ptr(),
        groups=expected.groups.count,
        inner=expected.groups.inner,
    )


def matches(actual: torch.Tensor, expected: ExpectedOutput, tolerance: Tolerance) -> bool:
    """Return whether every element of `actual` is within the tolerance."""
    if actual.shape != expected.tensor.shape or actual.dtype != expected.tensor.dtype:
        return False
    actual = actual.contiguous()
    comparison = compare_output(actual.data_ptr(), expected, tolerance)
    return int(comparison.mismatch_count) == 0
