"""Comparison in a CUDA device's memory finds what the comparison on the host finds."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from kernel_foundry_native import _core
from tests.native.cuda_case import CudaCase

pytestmark = pytest.mark.gpu

FIELDS = (
    "mismatch_count", "max_abs_error", "max_rel_error", "first_mismatch", "nan_count",
    "inf_count", "poisoned_count", "constant_factor",
)  # fmt: skip

FLOATS: dict[str, Any] = {"float32": np.float32, "float64": np.float64, "float16": np.float16}
INTEGERS: dict[str, Any] = {
    "int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64, "uint8": np.uint8,
    "bool": np.uint8,
}  # fmt: skip


@pytest.fixture(scope="module")
def case() -> Iterator[CudaCase]:
    opened = CudaCase()
    yield opened
    opened.close()


def assert_same(
    case: CudaCase,
    actual: npt.NDArray[Any],
    expected: npt.NDArray[Any],
    dtype: str,
    scale: npt.NDArray[np.float32] | None = None,
    **options: Any,
) -> Any:
    """Compare on the host and on the device, and return what both found."""
    plain = {"rtol": 1e-3, "atol": 1e-3, "groups": 1, "inner": 1} | options
    given = {"dtype": dtype, "count": actual.size, **plain}
    host = _core.compare(
        actual=actual.ctypes.data,
        expected=expected.ctypes.data,
        scale=0 if scale is None else scale.ctypes.data,
        **given,
    )
    device = case.device.compare(
        actual=case.upload(actual),
        expected=case.upload(expected),
        scale=0 if scale is None else case.upload(scale),
        **given,
    )
    for field in FIELDS:
        np.testing.assert_equal(getattr(device, field), getattr(host, field), field)  # NaN is NaN
    return device


def bits_of(dtype: str) -> npt.NDArray[Any]:
    """Return all 16-bit patterns, as elements of a 16-bit type."""
    every = np.arange(1 << 16, dtype=np.uint16)
    return every if dtype == "bfloat16" else every.view(np.float16)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("count", [1, 3, 4, 1023, 100_003])
def test_near_values_with_outliers(case: CudaCase, dtype: str, count: int) -> None:
    random = np.random.default_rng(count)
    expected = random.standard_normal(count).astype(FLOATS[dtype])
    noise = random.standard_normal(count) * 1e-3
    actual = (expected * (1 + noise)).astype(FLOATS[dtype])
    actual[random.integers(count, size=count // 50)] *= 3
    assert_same(case, actual, expected, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_every_pair_of_special_values(case: CudaCase, dtype: str) -> None:
    kind = FLOATS[dtype]
    limits = np.finfo(kind)
    special = np.array(
        [0, -0.0, 1, -1, np.nan, -np.nan, np.inf, -np.inf, limits.max, limits.min, limits.tiny,
         limits.smallest_subnormal],
        dtype=kind,
    )  # fmt: skip
    actual, expected = (x.ravel().copy() for x in np.meshgrid(special, special))
    found = assert_same(case, actual, expected, dtype)
    assert found.nan_count == 2 * len(special)
    finite = np.isfinite(actual) & np.isfinite(expected)
    assert_same(case, actual[finite].copy(), expected[finite].copy(), dtype, rtol=1e300)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_every_pattern_of_a_short_float(case: CudaCase, dtype: str) -> None:
    every = bits_of(dtype)
    assert assert_same(case, every, every.copy(), dtype).mismatch_count == 0
    assert_same(case, every, np.roll(every, 1).copy(), dtype)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_every_pattern_of_an_8_bit_float(case: CudaCase, dtype: str) -> None:
    every = np.arange(256, dtype=np.uint8)
    assert assert_same(case, every, every.copy(), dtype).mismatch_count == 0
    assert_same(case, every, np.roll(every, 1).copy(), dtype)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_differ_or_not_however_large(case: CudaCase, dtype: str) -> None:
    random = np.random.default_rng(0)
    limits = np.iinfo(INTEGERS[dtype])
    expected = random.integers(limits.min, limits.max, 5000, dtype=INTEGERS[dtype], endpoint=True)
    actual = expected.copy()
    actual[::7] = random.permutation(actual[::7])
    actual[13], expected[13] = limits.max, limits.min
    assert_same(case, actual, expected, dtype, rtol=0, atol=0)
    assert_same(case, actual, expected, dtype, rtol=0, atol=3)


def test_what_was_never_written_is_counted(case: CudaCase) -> None:
    expected = np.ones(5000, dtype=np.float32)
    actual = expected.copy()
    actual.view(np.uint32)[100:300] = 0xFFFFFFFF
    found = assert_same(case, actual, expected, "float32")
    assert (found.poisoned_count, found.first_mismatch) == (200, 100)


@pytest.mark.parametrize("factor", [2.0, -0.5, 0.0])
def test_a_factor_that_all_mismatches_share(case: CudaCase, factor: float) -> None:
    expected = np.random.default_rng(1).uniform(1, 2, 5000).astype(np.float32)
    actual = (expected * factor).astype(np.float32)
    found = assert_same(case, actual, expected, "float32")
    assert found.constant_factor == pytest.approx(factor)
    actual[7] = 100
    assert np.isnan(assert_same(case, actual, expected, "float32").constant_factor)


@pytest.mark.parametrize(("groups", "inner"), [(1, 1), (7, 1), (5, 9), (50, 100), (3, 3333)])
def test_scales_of_groups(case: CudaCase, groups: int, inner: int) -> None:
    random = np.random.default_rng(groups)
    scale = random.uniform(0, 2, groups).astype(np.float32)
    expected = random.standard_normal(10_001).astype(np.float32)
    actual = expected + random.standard_normal(10_001).astype(np.float32) * np.float32(1e-3)
    found = assert_same(
        case, actual, expected, "float32", scale, rtol=0.0, groups=groups, inner=inner
    )
    assert 0 < found.mismatch_count < 10_001


def test_addresses_that_are_not_aligned(case: CudaCase) -> None:
    expected = np.random.default_rng(2).standard_normal(1001).astype(np.float32)
    actual = expected.copy()
    actual[600] += 1
    a, e = case.upload(actual), case.upload(expected)
    found = case.device.compare(
        actual=a + 4, expected=e + 4, dtype="float32", count=1000, rtol=0.0, atol=1e-3
    )
    assert (found.mismatch_count, found.first_mismatch) == (1, 599)


def test_nothing_is_equal_to_nothing(case: CudaCase) -> None:
    found = case.device.compare(actual=0, expected=0, dtype="float32", count=0, rtol=0.0, atol=0.0)
    assert (found.mismatch_count, found.first_mismatch) == (0, -1)


def test_an_unknown_element_type_is_a_callers_mistake(case: CudaCase) -> None:
    with pytest.raises(ValueError, match="complex64"):
        case.device.compare(actual=0, expected=0, dtype="complex64", count=1, rtol=0.0, atol=0.0)


@pytest.mark.parametrize("position", [None, 0, 15, 16, 4095, 4999])
@pytest.mark.parametrize("shift", [0, 1])
def test_same_bytes(case: CudaCase, position: int | None, shift: int) -> None:
    left = np.random.default_rng(3).integers(0, 255, 5001, dtype=np.uint8)
    right = left.copy()
    if position is not None:
        right[position + shift] ^= 1
    a, b = case.upload(left) + shift, case.upload(right) + shift
    assert case.device.same_bytes(a, b, 5000) == (position is None)
    assert case.device.same_bytes(a, b, 0)
