"""Inputs that change from call to call: back exactly, within bounds, the same on every device."""

import hashlib
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_foundry_native import _core as native
from kernel_foundry_native import device_kind
from tests.native.redraw_formats import (
    FORMATS,
    ORDERED,
    Bits,
    any_bits,
    greatest_exponent,
    philox,
    redrawn,
    reordered,
)

SOURCE = Path(__file__).parents[2] / "native/src"
KEY = 0x0123_4567_89AB_CDEF

Options = Callable[..., native.MeasureOptions]


def bring(bits: Bits, dtype: str, *, undo: int = 0, apply: int = 0, number: int = 3) -> None:
    """Bring elements from one call's values to another's."""
    native.redraw(
        bits.ctypes.data, dtype=dtype, size_bytes=bits.nbytes, key=KEY, number=number,
        undo_index=undo, apply_index=apply,
    )  # fmt: skip


def test_the_generator_gives_its_authors_known_answers() -> None:
    zeros, ones = np.zeros(4, dtype=np.uint32), np.full(4, 0xFFFFFFFF, dtype=np.uint32)
    assert [f"{w:08x}" for w in philox(zeros, 0, rounds=10)] == [
        "6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8",
    ]  # fmt: skip
    assert [f"{w:08x}" for w in philox(ones, 2**64 - 1, rounds=10)] == [
        "408f276d", "41c83b0e", "a20bc7c6", "6d5451fd",
    ]  # fmt: skip


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("count", [1, 3, 16, 1001, 70_000])
def test_values_are_what_another_implementation_says(dtype: str, count: int) -> None:
    before = any_bits(dtype, count)
    after = before.copy()
    bring(after, dtype, apply=9)
    np.testing.assert_array_equal(after, redrawn(before, dtype, key=KEY, number=3, index=9))


@settings(max_examples=60, deadline=None)
@given(
    dtype=st.sampled_from(sorted(FORMATS)),
    count=st.integers(1, 5000),
    indices=st.lists(st.integers(0, 2**32 - 1), max_size=6),
)
def test_any_sequence_of_calls_leads_back(dtype: str, count: int, indices: list[int]) -> None:
    before = any_bits(dtype, count)
    bits = before.copy()
    for undo, apply in zip([0, *indices], [*indices, 0], strict=True):
        bring(bits, dtype, undo=undo, apply=apply)
    np.testing.assert_array_equal(bits, before)


@pytest.mark.parametrize("dtype", FORMATS)
def test_what_has_no_mantissa_or_no_finite_value_stays(dtype: str) -> None:
    kind, mantissa_bits = FORMATS[dtype]
    before = any_bits(dtype, 20_000)
    after = before.copy()
    bring(after, dtype, apply=1)
    mantissa, exponent = kind((1 << mantissa_bits) - 1), greatest_exponent(dtype)
    exponents = before >> kind(mantissa_bits) & kind(exponent)
    stays = (before & mantissa == 0) | (exponents == exponent)
    assert 0 < stays.sum() < stays.size
    np.testing.assert_array_equal(after[stays], before[stays])
    assert np.all(after[~stays] & mantissa != 0)
    signs = kind(1 << (8 * kind().itemsize - 1))
    np.testing.assert_array_equal(after & signs, before & signs)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_bounds_hold_and_means_move(dtype: type) -> None:
    unit = np.random.default_rng(1).random(100_000).astype(dtype)
    unit = unit[(unit > 0) & (unit < 1)]
    means = []
    for index in range(1, 25):
        values = unit.copy()
        bring(values.view(f"u{values.itemsize}"), values.dtype.name, apply=index)
        assert 0 < values.min() <= values.max() < 1
        means.append(float(values.mean(dtype=np.float64)))
    # Of 100,000 elements drawn anew the means would be within 0.001 of each other.
    assert np.std(means) > 0.02


def test_another_key_call_or_tensor_gives_other_values() -> None:
    def values(key: int, number: int, index: int) -> bytes:
        bits = any_bits("float32", 1000)
        native.redraw(
            bits.ctypes.data, dtype="float32", size_bytes=bits.nbytes, key=key, number=number,
            apply_index=index,
        )  # fmt: skip
        return bits.tobytes()

    given_ = [(1, 1, 1), (2, 1, 1), (1 << 32, 1, 1), (1, 2, 1), (1, 1, 2), (1, 2, 2)]
    assert len({values(*each) for each in given_}) == len(given_)


@pytest.mark.parametrize("dtype", ORDERED)
@pytest.mark.parametrize("count", [1, 2, 3, 255, 256, 1001, 70_000])
def test_places_are_what_another_implementation_says(dtype: str, count: int) -> None:
    before = np.arange(count).astype(ORDERED[dtype])
    after = before.copy()
    bring(after, dtype, apply=9)
    np.testing.assert_array_equal(after, reordered(before, key=KEY, index=9))
    bring(after, dtype, undo=9, apply=4)
    np.testing.assert_array_equal(after, reordered(before, key=KEY, index=4))
    bring(after, dtype, undo=4)
    np.testing.assert_array_equal(after, before)


def test_about_half_of_the_elements_change_places_each_with_one_other() -> None:
    for index in range(1, 20):
        places = np.arange(10_000, dtype=np.uint32)
        bring(places, "int32", apply=index)
        np.testing.assert_array_equal(places[places], np.arange(10_000))
        assert 0.45 < np.mean(places != np.arange(10_000)) < 0.55


def test_tensors_of_one_length_change_places_alike() -> None:
    first, second = np.arange(1000, dtype=np.uint32), np.arange(1000, dtype=np.uint64)
    bring(first, "int32", apply=3, number=0)
    bring(second, "int64", apply=3, number=1)
    np.testing.assert_array_equal(first, second)


def test_other_types_are_refused() -> None:
    with pytest.raises(ValueError, match="no type called complex64 is redrawn"):
        bring(np.zeros(4, dtype=np.uint32), "complex64", apply=1)


def test_every_call_of_a_measurement_has_values_of_its_own(options: Options) -> None:
    sets = [np.random.default_rng(i).random(500).astype(np.float32) for i in range(3)]
    before, seen = [values.copy() for values in sets], []
    found = native.measure_callable(
        lambda index: seen.append((index, sets[index].copy())),
        options(warmup_calls=2, set_count=3, max_samples=20),
        flush_bytes=0,
        redraw=(KEY, [("float32", 2000, 5)], [[values.ctypes.data] for values in sets]),
    )
    assert len(seen) == len(found.samples_ns) + found.warmup_count == 22
    for number, (index, values) in enumerate(seen, start=1):
        expected = redrawn(
            before[index].view(np.uint32), "float32", key=KEY, number=5, index=number
        )
        np.testing.assert_array_equal(values.view(np.uint32), expected)
    np.testing.assert_array_equal(sets, before)


def test_what_is_prepared_is_made_of_each_calls_own_values_and_timed(options: Options) -> None:
    null = device_kind("null")
    device = null.open_device()
    sets = [np.random.default_rng(i).random(500).astype(np.float32) for i in range(2)]
    seen: dict[str, list[tuple[int, bytes]]] = {"prepare": [], "launch": []}
    sequences = {name: null.LaunchSequence(device) for name in seen}
    for name, sequence in sequences.items():
        for number, values in enumerate(sets):
            sequence.bind(number, [values.ctypes.data])
        sequence.call(
            lambda number, name=name: seen[name].append((number, sets[number].tobytes())) or 0
        )
    found = sequences["launch"].measure(
        options(warmup_calls=2, set_count=2, min_samples=5, max_samples=5),
        flush_bytes=0,
        outputs=[],
        keep_into=[],
        redraw=(KEY, [("float32", 2000, 0)], [[values.ctypes.data] for values in sets]),
        preparation=sequences["prepare"],
        weights=[0],
        sealed_into=[[], []],
    )
    assert seen["prepare"] == seen["launch"]
    assert len({values for _, values in seen["launch"]}) == 7
    assert len(found.prepare_ns) == len(found.samples_ns) == 5


def test_prepare_finds_no_input_of_its_call(options: Options) -> None:
    """Whatever addresses it makes up: they are redrawn after it, weights before."""
    null = device_kind("null")
    device = null.open_device()
    weight, x = (np.random.default_rng(i).random(500).astype(np.float32) for i in range(2))
    seen: dict[str, list[tuple[bytes, bytes]]] = {"prepare": [], "launch": []}
    sequences = {name: null.LaunchSequence(device) for name in seen}
    for name, sequence in sequences.items():
        sequence.bind(0, [x.ctypes.data, weight.ctypes.data])
        sequence.call(
            lambda _set, name=name: seen[name].append((weight.tobytes(), x.tobytes())) or 0
        )
    sequences["launch"].measure(
        options(warmup_calls=2, set_count=1, min_samples=5, max_samples=5),
        flush_bytes=0,
        outputs=[],
        keep_into=[],
        redraw=(
            KEY,
            [("float32", 2000, 0), ("float32", 2000, 1)],
            [[x.ctypes.data, weight.ctypes.data]],
        ),
        preparation=sequences["prepare"],
        weights=[1],
        sealed_into=[[]],
    )
    for prepared, launched in zip(seen["prepare"], seen["launch"], strict=True):
        assert prepared[0] == launched[0]
        assert prepared[1] != launched[1]


def test_values_come_back_after_a_call_that_fails(options: Options) -> None:
    values = np.random.default_rng(0).random(100).astype(np.float32)
    before = values.copy()

    def call(_set: int) -> None:
        assert not np.array_equal(values, before)
        raise ArithmeticError("of the reference")

    with pytest.raises(ArithmeticError):
        native.measure_callable(
            call, options(), flush_bytes=0,
            redraw=(KEY, [("float32", 400, 0)], [[values.ctypes.data]]),
        )  # fmt: skip
    np.testing.assert_array_equal(values, before)


def test_the_text_for_the_driver_is_of_the_present_header() -> None:
    text = (SOURCE / "cuda_redraw_ptx.inc").read_text(encoding="utf-8")
    stated = re.search(r"sha256 of redraw\.hpp: (\w+)", text)
    digest = hashlib.sha256((SOURCE / "redraw.hpp").read_bytes()).hexdigest()
    assert stated is not None
    assert stated[1] == digest, "run native/generate_redraw_ptx.py"
