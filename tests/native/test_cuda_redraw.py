"""A CUDA device changes inputs to the very bits that the host changes them to."""

from collections.abc import Iterator

import numpy as np
import pytest

from kernel_foundry_native import _core
from tests.native.cuda_case import CudaCase
from tests.native.redraw_formats import FORMATS, ORDERED, any_bits

pytestmark = pytest.mark.gpu

KEY = 0xFEDC_BA98_7654_3210


@pytest.fixture(scope="module")
def case() -> Iterator[CudaCase]:
    opened = CudaCase()
    yield opened
    opened.close()


@pytest.mark.parametrize("dtype", [*FORMATS, *ORDERED])
@pytest.mark.parametrize(("count", "start"), [(1, 0), (1001, 0), (50_000, 0), (777, 1)])
def test_host_and_device_give_the_same_bits(
    case: CudaCase, dtype: str, count: int, start: int
) -> None:
    if dtype in FORMATS:
        before = any_bits(dtype, count + start)
    else:
        before = np.arange(count + start).astype(ORDERED[dtype])
    place = case.upload(before) + start * before.itemsize  # off a block's border, too
    host = before[start:].copy()
    for undo, apply in ((0, 4), (4, 2**31 + 5), (2**31 + 5, 0)):
        given = {
            "dtype": dtype, "size_bytes": host.nbytes, "key": KEY, "number": 2,
            "undo_index": undo, "apply_index": apply,
        }  # fmt: skip
        _core.redraw(host.ctypes.data, **given)
        case.device.redraw(place, **given)
        found = np.empty_like(host)
        case.device.copy(found.ctypes.data, place, found.nbytes)
        np.testing.assert_array_equal(found, host)
    np.testing.assert_array_equal(host, before[start:])


def test_what_is_covered_is_random_until_it_is_shown(case: CudaCase) -> None:
    ranges, before = [], []
    for size in (1, 15, 4096, 100_001, *[64] * 140):  # more than one launch takes
        before.append(np.arange(size).astype(np.uint8))
        ranges.append((case.upload(before[-1]), size, False, "x"))
    ranges.append((ranges[3][0] + 100_001 - 33, 0, True, "nothing"))
    cover = case.device.cover(ranges)

    def found() -> list[np.ndarray]:
        case.device.synchronize()
        arrays = [np.empty_like(each) for each in before]
        for array, (address, size, *_) in zip(arrays, ranges, strict=False):
            case.device.copy(array.ctypes.data, address, size)
        return arrays

    hidden = []
    for _ in range(2):
        cover.hide()
        hidden.append(found())
        cover.show()
        cover.show()
        for shown, own in zip(found(), before, strict=True):
            np.testing.assert_array_equal(shown, own)
    for first, second, own in zip(*hidden, before, strict=True):
        if own.size > 1:
            assert np.any(first != own)
            assert np.any(first != second)
    large = hidden[0][3]
    assert np.bincount(large, minlength=256).min() > 250  # 391 of each byte on average
    assert np.any(hidden[0][4] != hidden[0][5]), "two ranges have the same bits"
