"""PyTorch's own times for a workload, taken by the measuring loop that times candidates.

They run as KernelBench runs them: the module's mode, no gradients, fixed threads (eager on a CPU
also one, if that is faster); in TF32 where the task allows it. They rotate over the input sets of a
draw. On a GPU all their work goes to the stream that is measured, torch's current one.
"""

import math
import secrets
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any, Final

import torch

from evaluator_svc.baseline_names import COMPILE, EAGER, GRAPH, MAX_AUTOTUNE
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.memory.judge_memory import JudgeMemory
from evaluator_svc.judge.reference.tf32 import tf32_allowed
from evaluator_svc.judge.threads import one_thread
from evaluator_svc.judge.time_limit import TimeLimitError, time_limit
from evaluator_svc.judge.timed_calls.call_inputs import redraw_rows
from evaluator_svc.messages.measurement import MeasurementSettings
from evaluator_svc.messages.native_measurement import clock_blocks, measure_options
from kernel_foundry.domain.evaluation import Baseline, StopReason, Timing
from kernel_foundry.domain.median import median_interval
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry_native import _core as native

_COMPILE_WARMUP_CALLS: Final = 3
"""For each input set: the first compiles, the next may specialise once more."""

_COMPILE_SECONDS: Final = {"cuda": 30.0}
"""Most that compiling a reference may take, by kind of device: a network of hundreds of kernels
would keep the device from others for minutes. A CPU has far less to lose."""

_MAX_AUTOTUNE_SECONDS: Final = 240.0
"""The same in mode max-autotune, on any device, for all timed workloads of a task together: who
asks for it waits, and an admission (600 s) still has time for the rest."""

_AGREEMENT: Final = 0.02
"""Relative difference of two medians that is as good as none."""

_MOST_ROUNDS: Final = 5

_CAPTURE_WARMUP_CALLS: Final = 3
"""Libraries choose algorithms and workspaces in their first calls, which no graph can hold."""


class BaselineFailedError(Exception):
    """A baseline does not work for the reference; a warning, no refusal."""


def time_baseline(
    name: str,
    sets: Sequence[InputSet],
    settings: MeasurementSettings,
    memory: JudgeMemory,
    redrawn: Sequence[str] = (),
) -> Baseline:
    """Return the time of one call, over the input sets in random order, measured once.

    `redrawn`: as what each of a set's tensors changes before each call, as candidates' do.

    Raises:
        BaselineFailedError: torch.compile or capture does not work for this reference.
        InvalidArgumentError: no baseline of that name.
    """
    (timing,) = _timings(name, sets, settings, memory, redrawn, rounds=1)
    return Baseline(name=name, timing=timing)


def settled_baseline(
    name: str,
    sets: Sequence[InputSet],
    settings: MeasurementSettings,
    memory: JudgeMemory,
    redrawn: Sequence[str] = (),
) -> Baseline:
    """Return the time of one call, measured again until two measurements agree.

    What disturbs a measurement makes it slower, so the fastest one counts.

    Raises:
        As `time_baseline`.
    """
    timings: list[Timing] = []
    for timing in _timings(name, sets, settings, memory, redrawn, rounds=_MOST_ROUNDS):
        timings.append(timing)
        timings.sort(key=lambda timing: timing.median_ns)
        if len(timings) > 1 and _agree(*timings[:2]):
            break
    fastest, slowest_ns = timings[0], timings[-1].median_ns
    return Baseline(
        name=name,
        timing=fastest,
        round_count=len(timings),
        scatter=slowest_ns / fastest.median_ns - 1.0,
    )


def _agree(faster: Timing, slower: Timing) -> bool:
    """Return whether the intervals of two medians meet, or the medians hardly differ."""
    is_near = slower.median_ns <= (1 + _AGREEMENT) * faster.median_ns
    return is_near or slower.seen_ns[0] <= faster.seen_ns[1]


def _timings(
    name: str,
    sets: Sequence[InputSet],
    settings: MeasurementSettings,
    memory: JudgeMemory,
    redrawn: Sequence[str],
    *,
    rounds: int,
) -> Iterator[Timing]:
    if name not in _PREPARE:
        raise InvalidArgumentError(
            f"no baseline {name!r}; there are {', '.join(_PREPARE)}", field="names"
        )
    with torch.no_grad(), _tf32(sets):
        calls = _PREPARE[name](sets)

        def call(index: int) -> None:
            calls[index]()

        def measured(limited: MeasurementSettings) -> Timing:
            measurement = memory.measure(
                call,
                measure_options(memory.options_type, limited, set_count=len(sets)),
                flush_bytes=settings.flush_bytes,
                redraw=redraw_rows(sets, redrawn, secrets.randbits(63)),
            )
            return _timing(measurement, settings)

        tries_one_thread = name == EAGER and _may_wait_for_threads(sets)
        for _ in range(rounds):
            timing = measured(settings)
            if tries_one_thread:
                # Threads that share a core with another program spin while they wait for each
                # other: a hundred times slower than one thread alone. Let them wait asleep, and
                # calls of a quiet host take up to twice as long; so the faster of both counts.
                limit_ns = min(settings.stop_above_ns or math.inf, timing.median_ns)
                with one_thread():
                    alone = measured(replace(settings, stop_above_ns=limit_ns))
                # Not its best call came near: what is measured again is the other one's time.
                tries_one_thread = alone.stop_reason is not StopReason.SLOWER_THAN_INCUMBENT
                timing = min(timing, alone, key=lambda each: each.median_ns)
            yield timing


def _may_wait_for_threads(sets: Sequence[InputSet]) -> bool:
    return sets[0].module.device.type == "cpu" and torch.get_num_threads() > 1


def compile_seconds(name: str, sets: Sequence[InputSet], *, workload_count: int) -> float:
    """Compile the reference ahead of timing and return how long that took.

    Args:
        name: One of `baseline_names.COMPILED`.
        sets: Of one workload.
        workload_count: Workloads of the task that are compiled, this one included.

    Raises:
        BaselineFailedError: as `time_baseline`.
    """
    start = time.monotonic()
    limit_s = _COMPILE_SECONDS.get(sets[0].module.device.type, 0.0)
    if name == MAX_AUTOTUNE:
        limit_s = _MAX_AUTOTUNE_SECONDS / workload_count
    try:
        with _tf32(sets), time_limit(limit_s):
            _PREPARE[name](sets)
    except TimeLimitError as error:
        torch._dynamo.reset()
        raise BaselineFailedError(
            f"{name}: left out, for it was not done after {error.seconds:g} s; speed-ups are"
            " over the other baselines"
        ) from error
    return time.monotonic() - start


def _tf32(sets: Sequence[InputSet]) -> AbstractContextManager[None]:
    module = sets[0].module
    return tf32_allowed(module.device, allowed=module.allows_tf32)


def _eager_calls(sets: Sequence[InputSet]) -> list[Callable[[], Any]]:
    return [_call(model, values) for model, values in (s.callable_model() for s in sets)]


def _compiled_calls(
    sets: Sequence[InputSet], *, name: str = COMPILE, mode: str = "default"
) -> list[Callable[[], Any]]:
    calls = []
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of torch about its own parts
            for input_set in sets:
                model, values = input_set.callable_model()
                # The sets share code and shapes, so only the first one compiles.
                calls.append(_call(torch.compile(model, dynamic=False, mode=mode), values))
            for call in calls * _COMPILE_WARMUP_CALLS:
                call()
    except Exception as error:  # dynamo, inductor and the C++ compiler raise anything
        raise _failed(name, error) from error
    return calls


def _captured_calls(sets: Sequence[InputSet]) -> list[Callable[[], Any]]:
    stream = torch.cuda.current_stream()
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of torch about its own parts
            calls = [_captured(*input_set.callable_model()) for input_set in sets]
            for call in calls:
                call()
            torch.cuda.synchronize()
    except Exception as error:  # whatever cannot be captured raises something of its own
        _leave_capture(stream)
        raise _failed(GRAPH, error) from error
    return calls


def _captured(model: Callable[..., Any], values: Sequence[Any]) -> Callable[[], Any]:
    # A failed capture leaves much of torch's state behind, so waiting for the device, which is
    # what mostly cannot be captured, is looked for before.
    mode = torch.cuda.get_sync_debug_mode()
    try:
        for _ in range(_CAPTURE_WARMUP_CALLS):
            model(*values)
            torch.cuda.set_sync_debug_mode("error")
    finally:
        torch.cuda.set_sync_debug_mode(mode)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        outputs = model(*values)

    def replay(_held: Any = (model, values, outputs)) -> None:
        """Replay the graph; holds the tensors that it works on."""
        graph.replay()

    return replay


def _leave_capture(stream: torch.cuda.Stream) -> None:
    """Undo what a failed capture leaves behind: its stream, and a generator that records."""
    torch.cuda.set_stream(stream)
    generator = torch.cuda.default_generators[stream.device_index]
    generator.graphsafe_set_state(generator.clone_state())


def _failed(name: str, error: Exception) -> BaselineFailedError:
    # The first line of dynamo's errors names the backend, the second what it said.
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return BaselineFailedError(f"{name}: {type(error).__name__}: {' '.join(lines[:2])}")


def _call(model: Callable[..., Any], values: Sequence[Any]) -> Callable[[], Any]:
    return lambda: model(*values)


_PREPARE: Final[Mapping[str, Callable[[Sequence[InputSet]], list[Callable[[], Any]]]]] = {
    EAGER: _eager_calls,
    COMPILE: _compiled_calls,
    MAX_AUTOTUNE: partial(_compiled_calls, name=MAX_AUTOTUNE, mode="max-autotune"),
    GRAPH: _captured_calls,
}


def _timing(measurement: native.Measurement, settings: MeasurementSettings) -> Timing:
    samples_ns = tuple(measurement.samples_ns)
    median_ns, interval_ns = median_interval(samples_ns)
    return Timing(
        samples_ns=samples_ns,
        device_ns=tuple(measurement.device_ns),
        host_ns=tuple(measurement.host_ns),
        clocks=clock_blocks(measurement),
        median_ns=median_ns,
        ci95_ns=interval_ns,
        stop_reason=StopReason(measurement.stop_reason),
        is_cold=settings.flush_bytes > 0,
        warmup_count=measurement.warmup_count,
        discarded_count=measurement.discarded_count,
    )
