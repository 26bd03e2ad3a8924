"""The measuring loop: order of sets, stopping, kept outputs."""

import math
import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import kernel_foundry_native as native
from kernel_foundry_native._core import POISON_BYTE, MeasureOptions, kept_calls, measure_callable

Options = Callable[..., MeasureOptions]


def test_sets_are_picked_at_random_and_never_twice_running(options: Options) -> None:
    calls: list[int] = []
    measure_callable(calls.append, options(set_count=4, max_samples=400), flush_bytes=0)
    assert len(calls) == 401
    assert all(a != b for a, b in pairwise(calls))
    assert min(Counter(calls).values()) > 60


def test_the_same_seed_gives_the_same_order(options: Options) -> None:
    def order(seed: int) -> list[int]:
        calls: list[int] = []
        measure_callable(calls.append, options(set_count=8, order_seed=seed), flush_bytes=0)
        return calls

    assert order(7) == order(7) != order(8)


def test_steady_calls_stop_converged(options: Options) -> None:
    def call(_set: int) -> None:
        until = time.perf_counter() + 0.002
        while time.perf_counter() < until:
            pass

    found = measure_callable(
        call, options(target_half_width=0.2, max_samples=1000), flush_bytes=1 << 20
    )
    assert found.stop_reason == "converged"
    assert 10 <= len(found.samples_ns) < 1000
    assert found.half_width <= 0.2
    assert np.median(found.samples_ns) >= 2e6
    assert sum(found.samples_ns) <= found.elapsed_ns
    assert found.device_ns == []


def test_the_number_of_samples_is_bounded(options: Options) -> None:
    found = measure_callable(lambda _: None, options(max_samples=17), flush_bytes=0)
    assert (found.stop_reason, len(found.samples_ns)) == ("max_samples", 17)


def test_slow_calls_stop_on_the_budget(options: Options) -> None:
    found = measure_callable(lambda _: time.sleep(0.05), options(max_seconds=0.12), flush_bytes=0)
    assert found.stop_reason == "budget"
    assert 1 <= len(found.samples_ns) <= 3
    assert math.isinf(found.half_width)


def test_a_call_clearly_slower_than_the_incumbent_is_given_up(options: Options) -> None:
    found = measure_callable(lambda _: time.sleep(0.002), options(stop_above_ns=1e6), flush_bytes=0)
    assert (found.stop_reason, len(found.samples_ns)) == ("slower_than_incumbent", 3)


def test_what_a_callable_raises_goes_through(options: Options) -> None:
    def call(_set: int) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        measure_callable(call, options(), flush_bytes=0)


def relu_sequence(count: int, set_count: int) -> tuple[Any, list[Any], list[Any]]:
    """Return a null-device sequence with inputs and outputs for each set."""
    null = native.device_kind("null")
    device = null.open_device()
    program = device.load(
        code=null.open_compiler().compile(source="", options=[], kernels=["null_relu"]).code,
        kernels=["null_relu"],
    )
    sequence = null.LaunchSequence(device)
    sequence.launch(
        program=program, kernel="null_relu", grid=(1, 1, 1), block=(1, 1, 1), dimensions=1,
        arguments=[
            null.buffer_argument(0), null.buffer_argument(1),
            null.scalar_argument("int64", count),
        ],
    )  # fmt: skip
    inputs = [np.full(count, 1.0 + s, dtype=np.float32) for s in range(set_count)]
    outputs = [np.zeros(count, dtype=np.float32) for _ in range(set_count)]
    for index, (x, out) in enumerate(zip(inputs, outputs, strict=True)):
        sequence.bind(index, [x.ctypes.data, out.ctypes.data])
    return sequence, inputs, outputs


def test_outputs_of_kept_calls_are_those_of_their_set(options: Options) -> None:
    count = 1000
    sequence, inputs, outputs = relu_sequence(count, 3)
    kept = [np.zeros(count, dtype=np.float32) for _ in range(4)]
    found = sequence.measure(
        options(set_count=3, max_samples=30),
        flush_bytes=1 << 20,
        outputs=[(1, outputs[0].nbytes)],
        keep_into=[[k.ctypes.data] for k in kept],
    )
    assert len(found.kept) == 4
    assert len({sample for sample, _ in found.kept}) == 4
    for values, (sample, index) in zip(kept, found.kept, strict=True):
        assert 0 <= sample < 30
        np.testing.assert_array_equal(values, inputs[index])


def test_outputs_are_poisoned_before_each_call(options: Options) -> None:
    count = 100
    sequence, _, outputs = relu_sequence(count, 1)
    # Two more elements than the kernel writes.
    wide = np.zeros(count + 2, dtype=np.float32)
    kept = np.zeros(count + 2, dtype=np.float32)
    sequence.bind(0, [outputs[0].ctypes.data, wide.ctypes.data])
    sequence.measure(
        options(), flush_bytes=0, outputs=[(1, wide.nbytes)], keep_into=[[kept.ctypes.data]]
    )
    assert (kept.view(np.uint8)[-8:] == POISON_BYTE).all()
    assert not np.isnan(kept[:count]).any()


def test_scratch_holds_another_byte_before_each_call(options: Options) -> None:
    count = 64
    sequence, _, outputs = relu_sequence(count, 1)
    # The kernel leaves its second half alone, which is looked at as if it were an output.
    scratch = np.zeros(2 * count, dtype=np.float32)
    kept = [np.zeros(2 * count, dtype=np.float32) for _ in range(4)]
    sequence.bind(0, [outputs[0].ctypes.data, scratch.ctypes.data])
    sequence.measure(
        options(max_samples=40, order_seed=5),
        flush_bytes=0,
        outputs=[(1, scratch.nbytes)],
        keep_into=[[values.ctypes.data] for values in kept],
        scratch=[(1, scratch.nbytes)],
    )
    found = [values.view(np.uint8)[4 * count :] for values in kept]
    assert all((values == values[0]).all() for values in found)
    assert len({int(values[0]) for values in found}) > 1


def test_a_keep_slot_needs_an_address_for_each_output(options: Options) -> None:
    sequence, _, outputs = relu_sequence(10, 1)
    with pytest.raises(ValueError, match="one address for each output"):
        sequence.measure(options(), flush_bytes=0, outputs=[(1, outputs[0].nbytes)], keep_into=[[]])


@pytest.mark.parametrize("keep_count", [0, 1, 2, 5])
def test_what_is_kept_can_be_told_by_another_process(options: Options, keep_count: int) -> None:
    sequence, _inputs, outputs = relu_sequence(64, 4)
    kept = [np.zeros(64, np.float32) for _ in range(keep_count)]
    found = sequence.measure(
        options(set_count=4, max_samples=37, order_seed=11),
        flush_bytes=0,
        outputs=[(1, outputs[0].nbytes)],
        keep_into=[[values.ctypes.data] for values in kept],
    )
    told = kept_calls(
        order_seed=11,
        set_count=4,
        keep_count=keep_count,
        warmup_count=found.warmup_count,
        call_count=len(found.samples_ns) + found.discarded_count,
    )
    assert told == found.kept
