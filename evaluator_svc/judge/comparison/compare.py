"""Comparison of one output with its expected values, natively and element by element.

The bound of an element is atol * scale + rtol * |expected|. `tensors/scales.py` says what the scale
is; it is 1 where the tolerance was given by hand.
"""

import math
from typing import Final

import torch

from evaluator_svc.judge.draws.expected_output import ExpectedOutput
from evaluator_svc.judge.reference.name_table import dtype_name
from kernel_foundry.domain.task import Tolerance
from kernel_foundry_native import _core as native

_ROUNDING: Final = 1e-6
"""Elements that are added to an allowed count, since 1.0 - 0.9 is less than a tenth."""


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


def allowed_mismatches(element_count: int, matched: float, largest_error: float) -> int:
    """Return how many floats of an output may be wrong; none where an error is not finite."""
    if not math.isfinite(largest_error):
        return 0
    return math.floor((1.0 - matched) * element_count + _ROUNDING)


def matches(actual: torch.Tensor, expected: ExpectedOutput, tolerance: Tolerance) -> bool:
    """Return whether every element of `actual` is within the tolerance."""
    if actual.shape != expected.tensor.shape or actual.dtype != expected.tensor.dtype:
        return False
    actual = actual.contiguous()
    comparison = compare_output(actual.data_ptr(), expected, tolerance)
    return int(comparison.mismatch_count) == 0
