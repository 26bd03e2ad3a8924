"""Comparison of outputs, against numpy."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_foundry_native._core import POISON_BYTE, Comparison, compare


def compared(
    actual: np.ndarray[Any, Any],
    expected: np.ndarray[Any, Any],
    *,
    rtol: float = 0.0,
    atol: float = 0.0,
    dtype: str = "",
    **scaling: int,
) -> Comparison:
    """Compare two arrays of one dtype."""
    return compare(
        actual=actual.ctypes.data,
        expected=expected.ctypes.data,
        dtype=dtype or actual.dtype.name,
        count=actual.size,
        rtol=rtol,
        atol=atol,
        **scaling,
    )


@given(
    seed=st.integers(0, 2**32 - 1),
    dtype=st.sampled_from(["float16", "float32", "float64"]),
    rtol=st.sampled_from([0.0, 1e-3, 1e-1]),
    atol=st.sampled_from([0.0, 1e-3, 1.0]),
    count=st.integers(1, 500),
)
def test_floats_agree_with_numpy(
    seed: int, dtype: str, rtol: float, atol: float, count: int
) -> None:
    random = np.random.default_rng(seed)
    special = np.array([np.nan, np.inf, -np.inf, 0.0])
    expected = random.standard_normal(count).astype(dtype)
    expected[random.random(count) < 0.1] = random.choice(special)
    actual = (expected + random.standard_normal(count) * 1e-2).astype(dtype)
    actual[random.random(count) < 0.1] = random.choice(special)

    a, e = actual.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(a) & np.isfinite(e)
    with np.errstate(invalid="ignore"):
        right = (a == e) | (np.isnan(a) & np.isnan(e))
        right |= finite & (np.abs(a - e) <= atol + rtol * np.abs(e))
    found = compared(actual, expected, rtol=rtol, atol=atol)
    wrong = np.flatnonzero(~right)
    assert found.mismatch_count == wrong.size
    assert found.first_mismatch == (wrong[0] if wrong.size else -1)
    assert found.nan_count == np.isnan(a).sum()
    assert found.inf_count == np.isinf(a).sum()
    if finite.all():
        assert found.max_abs_error == np.abs(a - e).max()


@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "int8", "uint8"])
def test_integers_agree_with_numpy(dtype: str) -> None:
    random = np.random.default_rng(0)
    limits = np.iinfo(dtype)
    expected = random.integers(limits.min, limits.max, 1000, dtype=dtype, endpoint=True)
    actual = expected.copy()
    actual[[3, 500]] ^= 1
    found = compared(actual, expected)
    assert (found.mismatch_count, found.first_mismatch, found.max_abs_error) == (2, 3, 1.0)


def test_large_integers_that_a_double_cannot_tell_apart_differ() -> None:
    expected = np.array([2**62, -(2**63)], dtype=np.int64)
    actual = np.array([2**62 + 1, 2**63 - 1], dtype=np.int64)
    found = compared(actual, expected)
    assert (found.mismatch_count, found.max_abs_error) == (2, 2.0**64)


def test_bfloat16_is_read_as_the_upper_half_of_a_float() -> None:
    expected = np.array([1.0, -2.5, 3.0e38], dtype=np.float32)
    upper = (expected.view(np.uint32) >> 16).astype(np.uint16)
    changed = upper.copy()
    changed[1] += 1
    found = compared(changed, upper, dtype="bfloat16")
    assert (found.mismatch_count, found.first_mismatch) == (1, 1)
    assert found.max_abs_error == 2.0**-6


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_8_bit_floats_are_read_as_torch_reads_them(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    bits = np.arange(256, dtype=np.uint8)
    values = torch.from_numpy(bits).view(getattr(torch, dtype)).float().numpy()
    one = np.full(256, 0x3C if dtype == "float8_e5m2" else 0x38, dtype=np.uint8)
    finite = np.isfinite(values)

    found = compared(bits, one, dtype=dtype)
    assert found.nan_count == int(np.isnan(values).sum())
    assert found.inf_count == int(np.isinf(values).sum())
    for bit, value in zip(bits[finite], values[finite], strict=True):
        found = compared(np.array([bit]), one[:1].copy(), dtype=dtype)
        assert found.max_abs_error == abs(float(value) - 1.0)


def test_every_part_of_a_large_output_is_compared() -> None:
    expected = np.zeros(3_000_001, dtype=np.float32)
    actual = expected.copy()
    actual[[1_499_999, 3_000_000]] = 1.0
    found = compared(actual, expected, atol=0.5)
    assert (found.mismatch_count, found.first_mismatch) == (2, 1_499_999)


def test_the_tolerance_is_in_units_of_each_groups_scale() -> None:
    expected = np.zeros((2, 3, 4), dtype=np.float32)
    actual = np.full_like(expected, 0.5)
    scale = np.array([1.0, 0.1, 1.0], dtype=np.float32)
    found = compared(
        actual, expected, atol=1.0, scale=scale.ctypes.data, groups=3, inner=4
    )  # fmt: skip
    assert (found.mismatch_count, found.first_mismatch) == (8, 4)


def test_a_shared_factor_is_found() -> None:
    expected = np.linspace(1, 2, 100, dtype=np.float32)
    assert compared(expected * 3, expected).constant_factor == pytest.approx(3.0, rel=1e-3)
    uneven = expected * np.linspace(2, 3, 100, dtype=np.float32)
    assert math.isnan(compared(uneven, expected).constant_factor)
    assert math.isnan(compared(expected, expected).constant_factor)


def test_elements_never_written_are_counted() -> None:
    expected = np.ones(100, dtype=np.float32)
    actual = expected.copy()
    actual.view(np.uint8)[-80:] = POISON_BYTE
    found = compared(actual, expected)
    assert (found.poisoned_count, found.nan_count, found.mismatch_count) == (20, 20, 20)
    legitimate = np.full(4, -1, dtype=np.int32)
    assert compared(legitimate, legitimate).poisoned_count == 0


def test_caller_mistakes_are_value_errors() -> None:
    one = np.ones(1, dtype=np.float32)
    with pytest.raises(ValueError, match="complex64"):
        compared(one, one, dtype="complex64")
    with pytest.raises(ValueError, match="groups"):
        compared(one, one, groups=0)
