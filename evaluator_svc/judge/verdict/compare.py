"""Comparison of one output with its expected values, natively and element by element.

The bound of an element is atol * scale + rtol * |expected|. The scale is the root mean square of
the element's row (of its image, for batches of images), since one output can span ten orders of
magnitude; 1 where the tolerance was given by hand. Knows nothing of seeds and findings.
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
"""Least scale of a group, in units of the whole output's: a dead row still has rounding noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedOutput:
    """Expected values of one output, ready for comparison."""

    tensor: torch.Tensor
    """Contiguous."""
    scale: torch.Tensor | None
    """`(groups,)` float32; None: 1 everywhere."""
    groups: int
    inner: int
    """Elements of a group; neighbours in memory."""
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
        return bound.add_(tolerance.atol * self.scale[places // self.inner % self.groups])

    def is_finite(self) -> bool:
        """Return whether all values are finite, looked at in pieces."""
        if self.is_exact:
            return True
        parts = torch.split(self.tensor.reshape(-1), CHUNK_ELEMENTS)
        return all(bool(computable(part).isfinite().all()) for part in parts)

    def bound(self, tolerance: Tolerance) -> torch.Tensor:
        """Return the largest allowed error of each element, in the output's shape, float32."""
        if self.is_exact:
            return torch.zeros(self.tensor.shape, device=self.tensor.device)
        grouped = self.tensor.reshape(self.groups, self.inner).float().abs()
        scale = grouped.new_ones(self.groups) if self.scale is None else self.scale
        bound = grouped.mul_(tolerance.rtol).add_(tolerance.atol * scale[:, None])
        return bound.reshape(self.tensor.shape)


def expect(tensor: torch.Tensor, *, is_scaled: bool, memory: JudgeMemory) -> ExpectedOutput:
    """Return `tensor`, which lies in `memory`, with the scale of each of its groups."""
    groups, inner = group_shape(tuple(tensor.shape))
    is_scaled = is_scaled and tensor.is_floating_point() and tensor.numel() > 0
    return ExpectedOutput(
        tensor=tensor,
        scale=group_scale(tensor) if is_scaled else None,
        groups=groups,
        inner=inner,
        memory=memory,
    )


def group_scale(tensor: torch.Tensor) -> torch.Tensor:
    """Return the root mean square of each group of a floating-point tensor, float32.

    Works in pieces of `CHUNK_ELEMENTS`, so that large tensors need no large temporaries.
    """
    groups, inner = group_shape(tuple(tensor.shape))
    grouped = tensor.reshape(groups, inner)
    norms = [torch.linalg.vector_norm(part.float(), dim=1) for part in row_chunks(grouped)]
    scale = torch.cat(norms).div_(math.sqrt(inner)).nan_to_num_(nan=0.0, posinf=0.0)
    whole = math.sqrt(float(scale.double().square().mean()))
    return scale.clamp_(min=max(_SCALE_FLOOR * whole, 1e-35)).contiguous()


def row_chunks(grouped: torch.Tensor, elements: int = CHUNK_ELEMENTS) -> Iterator[torch.Tensor]:
    """Yield views of consecutive rows, each of at most `elements` elements or a single row."""
    rows = max(elements // max(grouped.shape[1], 1), 1)
    for start in range(0, len(grouped), rows):
        yield grouped[start : start + rows]


def group_shape(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return (groups, inner): the rows of a matrix, the channels of images (rank 4 and up)."""
    axis = 2 if len(shape) >= 4 else len(shape) - 1
    while axis > 0 and math.prod(shape[axis:]) < _MIN_GROUP:
        axis -= 1
    axis = max(axis, 0)
    return max(math.prod(shape[:axis]), 1), max(math.prod(shape[axis:]), 1)


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
        groups=expected.groups,
        inner=expected.inner,
    )


def matches(actual: torch.Tensor, expected: ExpectedOutput, tolerance: Tolerance) -> bool:
    """Return whether every element of `actual` is within the tolerance."""
    if actual.shape != expected.tensor.shape or actual.dtype != expected.tensor.dtype:
        return False
    actual = actual.contiguous()
    comparison = compare_output(actual.data_ptr(), expected, tolerance)
    return int(comparison.mismatch_count) == 0
