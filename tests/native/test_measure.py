"""The measuring loop: order of sets, stopping, kept outputs."""

import math
import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import kernel_foundry_native as native
from evaluator_svc.messages.call_draws import call_draws, call_draws_file
from kernel_foundry_native._core import POISON_BYTE, MeasureOptions, kept_calls, measure_callable

Options = Callable[..., MeasureOptions]


def test_sets_are_picked_at_random_and_never_twice_running(options: Options) -> None:
    calls: list[int] = []
    measure_callable(calls.append, options(set_count=4, max_samples=400), flush_bytes=0)
    assert len(calls) == 401
    assert all(a != b for a, b in pairwise(calls))
    assert min(Counter(calls).values()) > 60


def test_the_same_draws_give_the_same_order(options: Options) -> None:
    def order(seed: int) -> list[int]:
        calls: list[int] = []
        with call_draws_file(seed) as draws:
            measure_callable(calls.append, options(set_count=8, draws=draws), flush_bytes=0)
        return calls

    assert order(7) == order(7) != order(8)


def test_steady_calls_stop_converged(options: Options) -> None:
    def call(_set: int) -> None:
        until = time.perf_counter() + 0.002
        while time.perf_counter() < until:
            pass

    # On a busy machine single calls take many times as long: more of them tell the same.
    found = measure_callable(
        call,
        options(target_half_width=0.5, max_samples=20_000, max_seconds=60.0),
        flush_bytes=1 << 20,
    )
    assert found.stop_reason == "converged"
    assert 10 <= len(found.samples_ns) < 20_000
    assert found.half_width <= 0.5
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


def test_slow_calls_have_three_samples_within_three_times_the_budget(options: Options) -> None:
    found = measure_callable(lambda _: time.sleep(0.05), options(max_seconds=0.06), flush_bytes=0)
    assert found.stop_reason == "budget"
    assert len(found.samples_ns) == 3 or found.elapsed_ns >= 3 * 0.06e9


def test_a_call_longer_than_all_of_that_is_measured_once(options: Options) -> None:
    found = measure_callable(lambda _: time.sleep(0.01), options(max_seconds=0.001), flush_bytes=0)
    assert (found.stop_reason, len(found.samples_ns)) == ("budget", 1)


def test_a_call_clearly_slower_than_the_incumbent_is_given_up(options: Options) -> None:
    found = measure_callable(lambda _: time.sleep(0.002), options(stop_above_ns=1e6), flush_bytes=0)
    assert (found.stop_reason, len(found.samples_ns)) == ("slower_than_incumbent", 3)


@pytest.mark.parametrize(
    ("stop_factor", "reason"), [(2.0, "slower_than_incumbent"), (1e6, "max_samples")]
)
def test_who_gives_up_says_how_far_is_too_far(
    options: Options, stop_factor: float, reason: str
) -> None:
    limits = options(stop_above_ns=1e5, stop_factor=stop_factor, max_samples=6)
    found = measure_callable(lambda _: time.sleep(0.002), limits, flush_bytes=0)
    assert found.stop_reason == reason


def test_what_a_callable_raises_goes_through(options: Options) -> None:
    def call(_set: int) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        measure_callable(call, options(), flush_bytes=0)


def relu_sequence(count: int, set_count: int) -> tuple[Any, list[Any], list[Any]]:
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
        options(max_samples=40),
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


@pytest.mark.parametrize("guest_count", [0, 3])
@pytest.mark.parametrize("keep_count", [0, 1, 2, 5])
def test_what_is_kept_can_be_told_by_another_process(
    options: Options, keep_count: int, guest_count: int
) -> None:
    sequence, inputs, outputs = relu_sequence(64, 4)
    kept = [np.zeros(64, np.float32) for _ in range(keep_count)]
    with call_draws_file(11) as draws:
        found = sequence.measure(
            options(set_count=4, max_samples=37, draws=draws),
            flush_bytes=0,
            outputs=[(1, outputs[0].nbytes)],
            keep_into=[[values.ctypes.data] for values in kept],
            guests=guests_in(inputs, guest_count).rows if guest_count else None,
        )
    told = kept_calls(
        draws=call_draws(11),
        set_count=4,
        keep_count=keep_count,
        has_guests=guest_count > 0,
        warmup_count=found.warmup_count,
        call_count=len(found.samples_ns) + found.discarded_count,
    )
    assert told == found.kept


def test_nothing_tells_beforehand_which_calls_are_kept(options: Options) -> None:
    """What decides is read when a call has ended: until then it may still change."""
    keep_count, count, changed_at = 2, 40, 20
    sequence, _inputs, outputs = relu_sequence(8, 2)
    kept = [np.zeros(8, np.float32) for _ in range(keep_count)]
    before, after = call_draws(3), call_draws(4)
    at = 12 * (1 + changed_at) + 8  # the call's own; one call warms up
    both = before[:at] + after[at:]
    calls = 0
    with call_draws_file(3) as draws:

        def change_in_the_call(_set: int) -> int:
            nonlocal calls
            calls += 1
            if calls == 1 + changed_at + 1:
                os.pwrite(draws, after[at:], at)
            return int(outputs[0].ctypes.data)

        sequence.call(change_in_the_call)
        found = sequence.measure(
            options(set_count=2, max_samples=count, draws=draws),
            flush_bytes=0,
            outputs=[(1, outputs[0].nbytes)],
            keep_into=[[values.ctypes.data] for values in kept],
        )
    told = partial(
        kept_calls, set_count=2, keep_count=keep_count, has_guests=False, warmup_count=1,
        call_count=count,
    )  # fmt: skip
    assert found.kept == told(draws=both) != told(draws=before)


@dataclass
class Guests:
    values: list[Any]
    aside: Any
    written: list[Any]
    rows: Any


def guests_in(inputs: list[Any], guest_count: int) -> Guests:
    """Return guests in sets that have one input, and what the native loop wants of them."""
    count = inputs[0].size
    values = [np.full(count, 50.0 + g, dtype=np.float32) for g in range(guest_count)]
    aside = np.zeros(count, dtype=np.float32)
    written = [np.zeros(count, dtype=np.float32) for _ in range(guest_count)]
    rows = (
        [(0, count * 4)],
        [[x.ctypes.data] for x in inputs],
        [[x.ctypes.data] for x in values],
        [aside.ctypes.data],
        [[x.ctypes.data] for x in written],
    )
    return Guests(values=values, aside=aside, written=written, rows=rows)


def measured_with_guests(options: Options, seed: int, samples: int) -> int:
    """Return how many calls had guests' inputs; sets have their own again for every other call."""
    count, guest_count = 100, 3
    sequence, inputs, outputs = relu_sequence(count, 4)
    own = [values.copy() for values in inputs]
    guests = guests_in(inputs, guest_count)
    kept = [np.zeros(count, dtype=np.float32) for _ in range(samples)]
    with call_draws_file(seed) as draws:
        found = sequence.measure(
            options(set_count=4, min_samples=samples, max_samples=samples, draws=draws),
            flush_bytes=1 << 20,
            outputs=[(1, outputs[0].nbytes)],
            keep_into=[[values.ctypes.data] for values in kept],
            guests=guests.rows,
        )
    assert len(found.samples_ns) == samples
    for written, expected in list(zip(guests.written, guests.values, strict=True))[
        : found.guest_calls
    ]:
        np.testing.assert_array_equal(written, expected)
    for values, before in zip(inputs, own, strict=True):
        np.testing.assert_array_equal(values, before)
    for values, (_, index) in zip(kept, found.kept, strict=True):
        np.testing.assert_array_equal(values, own[index])
    return int(found.guest_calls)


def test_calls_among_the_timed_ones_have_the_inputs_of_guests(options: Options) -> None:
    made = [measured_with_guests(options, seed, 30) for seed in range(12)]
    assert 1.5 <= np.mean(made) <= 5.5  # 0.75 of each stretch of 1 to 3, 4 to 15 and so on


def test_of_few_calls_one_has_a_guest(options: Options) -> None:
    assert measured_with_guests(options, 1, 1) == 1


def test_guests_need_draws_that_can_be_read_again(options: Options) -> None:
    sequence, inputs, outputs = relu_sequence(10, 1)
    with pytest.raises(ValueError, match="need a file of draws"):
        sequence.measure(
            options(),
            flush_bytes=0,
            outputs=[(1, outputs[0].nbytes)],
            keep_into=[],
            guests=guests_in(inputs, 1).rows,
        )


def test_a_guest_needs_an_address_for_each_output(options: Options) -> None:
    sequence, inputs, outputs = relu_sequence(10, 1)
    row = [inputs[0].ctypes.data]
    with pytest.raises(ValueError, match="one address for each output"):
        sequence.measure(
            options(),
            flush_bytes=0,
            outputs=[(1, outputs[0].nbytes)],
            keep_into=[],
            guests=([(0, inputs[0].nbytes)], [row], [row], row, [[]]),
        )
