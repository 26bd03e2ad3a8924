"""Sequences of launches and host calls, replayed on sets of addresses."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import kernel_foundry_native as native
from kernel_foundry_native._core import MeasureOptions

COUNT = 64

null = native.device_kind("null")


@pytest.fixture
def device() -> Any:
    return null.open_device()


def append_relu(sequence: Any, device: Any, source: int, target: int) -> None:
    code = null.open_compiler().compile(source="", options=[], kernels=["null_relu"]).code
    sequence.launch(
        program=device.load(code=code, kernels=["null_relu"]), kernel="null_relu",
        grid=(1, 1, 1), block=(1, 1, 1), dimensions=1,
        arguments=[
            null.buffer_argument(source), null.buffer_argument(target),
            null.scalar_argument("int64", COUNT),
        ],
    )  # fmt: skip


def vector(value: float) -> Any:
    """Return the content of one buffer."""
    return np.full(COUNT, value, dtype=np.float32)


def test_a_call_gets_the_set_and_stands_in_its_place(device: Any) -> None:
    sequence = null.LaunchSequence(device)
    x, y, out = vector(1), vector(0), vector(0)
    sets: list[int] = []

    def double(index: int) -> int:
        sets.append(index)
        np.multiply(x, 2, out=y)
        return 0

    sequence.call(double)
    append_relu(sequence, device, 1, 2)
    for index in range(2):
        sequence.bind(index, [x.ctypes.data, y.ctypes.data, out.ctypes.data])
    sequence.run(1)
    sequence.enqueue(0)
    device.synchronize()
    assert sets == [1, 0]
    np.testing.assert_array_equal(out, vector(2))


def test_the_address_a_call_returns_is_bound_for_the_steps_that_follow(device: Any) -> None:
    sequence = null.LaunchSequence(device)
    bound, returned, out = vector(1), vector(5), vector(0)
    append_relu(sequence, device, 0, 1)
    sequence.call(lambda _: returned.ctypes.data, buffer=0)
    append_relu(sequence, device, 0, 2)
    before = vector(0)
    sequence.bind(0, [bound.ctypes.data, before.ctypes.data, out.ctypes.data])
    for _ in range(2):  # the next run begins with what was bound
        sequence.run(0)
        np.testing.assert_array_equal(before, bound)
        np.testing.assert_array_equal(out, returned)


def test_outputs_that_a_call_made_are_kept(
    device: Any, options: Callable[..., MeasureOptions]
) -> None:
    sequence = null.LaunchSequence(device)
    returned, kept = vector(3), vector(0)
    sequence.call(lambda _: returned.ctypes.data, buffer=0)
    overwritten = vector(0)
    sequence.bind(0, [overwritten.ctypes.data])
    sequence.measure(
        options(), flush_bytes=0, outputs=[(0, kept.nbytes)], keep_into=[[kept.ctypes.data]]
    )
    np.testing.assert_array_equal(kept, returned)
    assert np.isnan(overwritten).all()


@pytest.mark.parametrize("flush_bytes", [0, 1 << 16])
def test_a_profile_has_the_time_of_each_step(device: Any, flush_bytes: int) -> None:
    sequence = null.LaunchSequence(device)
    x, out = vector(1), vector(0)
    append_relu(sequence, device, 0, 1)
    sequence.clear(1, out.nbytes)
    sequence.call(lambda _: 0)
    sequence.bind(0, [x.ctypes.data, out.ctypes.data])
    times_ns = sequence.profile(0, flush_bytes=flush_bytes)
    assert len(times_ns) == 3
    assert all(0 < time_ns < math.inf for time_ns in times_ns)
    assert times_ns[0] > 20_000, "the null kernels last 20 µs or more"


def test_capturing_changes_nothing_on_a_device_without_graphs(device: Any) -> None:
    sequence = null.LaunchSequence(device)
    x, out = vector(1), vector(0)
    append_relu(sequence, device, 0, 1)
    sequence.bind(0, [x.ctypes.data, out.ctypes.data])
    sequence.capture(0)
    assert not out.any()
    sequence.run(0)
    np.testing.assert_array_equal(out, x)


def test_what_a_call_raises_goes_through(device: Any) -> None:
    sequence = null.LaunchSequence(device)

    def fail(_set: int) -> int:
        raise KeyError("mine")

    sequence.call(fail)
    sequence.bind(0, [])
    with pytest.raises(KeyError, match="mine"):
        sequence.run(0)


def test_a_result_for_a_buffer_that_is_not_bound_is_refused(device: Any) -> None:
    sequence = null.LaunchSequence(device)
    sequence.call(lambda _: 0, buffer=1)
    sequence.bind(0, [0])
    with pytest.raises(IndexError):
        sequence.run(0)


def test_a_device_measures_callables_like_the_core(
    device: Any, options: Callable[..., MeasureOptions]
) -> None:
    calls: list[int] = []
    found = device.measure_callable(
        calls.append, options(set_count=2, max_samples=5), flush_bytes=1 << 16
    )
    assert len(calls) == 6
    assert len(found.samples_ns) == 5
    assert found.host_ns == []
    assert found.clocks == []


def test_what_libraries_hold_is_overwritten_before_each_call(
    device: Any, options: Callable[..., MeasureOptions]
) -> None:
    """Wherever they have it by then: the second stretch comes with the third call."""
    sequence = null.LaunchSequence(device)
    stretches = [np.arange(64, dtype=np.uint8) for _ in range(2)]
    untouched = np.arange(64, dtype=np.uint8)
    found: list[bool] = []

    def leave_a_mark(_: int) -> int:
        found.append(any((stretch == untouched).all() for stretch in held()))
        for stretch in stretches:
            stretch[:] = untouched
        return 0

    def held() -> list[Any]:
        return stretches if len(found) >= 2 else stretches[:1]

    sequence.call(leave_a_mark)
    sequence.bind(0, [])
    sequence.measure(
        options(), flush_bytes=0, outputs=[], keep_into=[],
        library_memory=lambda: [(s.ctypes.data, s.nbytes) for s in held()],
    )  # fmt: skip
    assert len(found) > 3
    assert not any(found)


def test_a_library_that_does_not_tell_what_it_holds_ends_the_measurement(
    device: Any, options: Callable[..., MeasureOptions]
) -> None:
    sequence = null.LaunchSequence(device)
    sequence.call(lambda _: 0)
    sequence.bind(0, [])

    def fail() -> list[tuple[int, int]]:
        raise LookupError("nobody knows")

    with pytest.raises(LookupError, match="nobody knows"):
        sequence.measure(
            options(), flush_bytes=0, outputs=[], keep_into=[], library_memory=fail
        )  # fmt: skip
