"""One configuration on one workload in a runner: from the judge's buffers to the last sample.

The buffers are in `inputs.py`.
"""

import os
import secrets
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from evaluator_svc.messages.draw import Draw
from evaluator_svc.messages.runner import (
    PoolReady,
    RunReply,
    StepTimes,
    TimeReply,
    TimeRequest,
    WithoutKernels,
)
from evaluator_svc.processes.locked_process import OpenDevice
from evaluator_svc.runner.copies_for_kernels import Copy, copies_for_kernels
from evaluator_svc.runner.covered import CoveredRange, covered
from evaluator_svc.runner.faults import launch_fault
from evaluator_svc.runner.input_pool import TimedSets
from evaluator_svc.runner.inputs import WorkloadInputs
from evaluator_svc.runner.loaded_sequence import LoadedSequence
from evaluator_svc.runner.memory import PlanMemory, plan_memory
from evaluator_svc.runner.shared_sets import SharedSets
from evaluator_svc.runner.timing import take_times, timed_sequence
from kernel_foundry.domain.kernel_time import KernelTime
from kernel_foundry.plan.sequence import Launch, LaunchSequence, LibraryCall, Step

_PROFILES: Final = 5
"""Runs whose median gives the time of each kernel."""
_PROFILE_SECONDS: Final = 1.0
"""Once these have passed no other run begins: no decision depends on these times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Runs:
    """A draw's buffers, with what runs on them."""

    shared: SharedSets
    memory: PlanMemory
    preparation: LoadedSequence | None
    """`prepare`, with a set for each seed; None where the plan has none."""
    loaded: LoadedSequence
    """`launch`, with a set for each output slot of each seed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _TimedRuns:
    """The sets that are timed, with what runs on them."""

    pool: TimedSets
    preparation: LoadedSequence | None
    """`prepare`, with a set for each of the pool's; None where the plan has none."""
    loaded: LoadedSequence
    sequence: Any
    """What is timed: the native sequence of `loaded`, or its graphs."""

    def run(self, index: int) -> list[int]:
        """Run set `index` as it was timed; return the address of every buffer afterwards."""
        self.loaded.scrub()
        self.sequence.run(index)
        return list(self.sequence.last_addresses)


class LoadedWorkload:
    """A bound plan and its own memory.

    Every method raises `CandidateFaultError` for what the candidate is at fault for.

    Args:
        opened: The device.
        program: Holds the kernels.
        sequence: The bound plan.
        inputs: What it reads, and where it writes.
        hidden: Returns what `prepare` may not see.
        tf32: Whether its library calls may use TF32.
    """

    def __init__(
        self,
        opened: OpenDevice,
        program: Any,
        sequence: LaunchSequence,
        inputs: WorkloadInputs,
        *,
        hidden: Callable[[], Iterable[CoveredRange]],
        tf32: bool,
    ) -> None:
        self.sequence = sequence
        self._tf32 = tf32
        self._opened = opened
        self._program = program
        self._inputs = inputs
        self._hidden = hidden
        self._runs: _Runs | None = None
        self._timed: _TimedRuns | None = None
        self._holds_run = False
        """Whether the last slot holds what the judge has not seen yet."""

    def open(self, draw: Draw, descriptors: tuple[int, ...], *, refilled: bool = False) -> None:
        """Take a draw's buffers, unless it has them, and run `prepare` for each seed's weights.

        `refilled`: what it has in them is not what was there before.
        """
        shared = self._inputs.open(draw, descriptors)
        if self._runs is not None and self._runs.shared is shared:
            if refilled and self._runs.preparation is not None:
                self._prepare_again(self._runs)
            return
        self.drop()
        memory = plan_memory(self._opened.device, self.sequence, seed_count=draw.seed_count)
        with _faults():
            preparation = self._prepare(shared, memory, self._hidden())
            loaded = self._load(memory, self.sequence.steps)
            for seed in range(draw.seed_count):
                for slot in range(draw.slot_count):
                    index = seed * draw.slot_count + slot
                    loaded.bind(index, shared.addresses(seed, slot), seed=seed)
        self._runs = _Runs(shared=shared, memory=memory, preparation=preparation, loaded=loaded)

    def run(self, *, into_last: bool) -> RunReply:
        """Run every seed once for each copy of the outputs, each time into its own.

        `into_last`: once, into the last copy, which is left as it is while times are taken.
        """
        runs = self._opened_runs()
        indices = range(runs.loaded.set_count)
        if into_last:
            slot_count = runs.shared.draw.slot_count
            indices = indices[slot_count - 1 :: slot_count]
        run_ns = 0.0
        with _faults():
            for index in indices:
                started_ns = time.perf_counter_ns()
                runs.loaded.run(index)
                run_ns = float(time.perf_counter_ns() - started_ns)
                runs.memory.check_guards()  # the next run writes them again
        runs.loaded.forget_results()
        runs.memory.check()
        self._holds_run = into_last
        return RunReply(run_ns=run_ns)

    def run_reordered(self, program: Any) -> None:
        """Run every seed once into its first slot with another program of the same kernels."""
        runs = self._opened_runs()
        draw = runs.shared.draw
        with _faults():
            loaded = LoadedSequence(
                self._opened, program, self.sequence.steps, runs.memory, tf32=self._tf32
            )
            for seed in range(draw.seed_count):
                loaded.bind(seed, runs.shared.addresses(seed, 0), seed=seed)
                loaded.run(seed)
        loaded.forget_results()
        runs.memory.check()

    def run_without_kernels(self, choice: int) -> WithoutKernels:
        """Run with copies in place of kernels, into every seed's first slot."""
        runs = self._opened_runs()
        outputs = tuple(slot.name for slot in runs.shared.outputs)
        copies = copies_for_kernels(self.sequence, outputs, choice=choice)
        with _faults():
            loaded = self._load(runs.memory, copies.steps)
            for seed in range(runs.shared.draw.seed_count):
                loaded.bind(seed, runs.shared.addresses(seed, 0), seed=seed)
                loaded.run(seed)
        loaded.forget_results()
        return WithoutKernels(choice_count=copies.choice_count)

    def run_once(self, draw: Draw, descriptors: tuple[int, ...]) -> None:
        """Run every seed of another draw, once into the first slot; nothing of it is kept."""
        device = self._opened.device
        shared = SharedSets(draw, descriptors, device)
        try:
            memory = plan_memory(device, self.sequence, seed_count=draw.seed_count)
            with _faults():
                self._prepare(shared, memory, (*shared.covered(), *self._hidden()))
                loaded = self._load(memory, self.sequence.steps)
                for seed in range(draw.seed_count):
                    loaded.bind(seed, shared.addresses(seed, 0), seed=seed)
                    loaded.run(seed)
            loaded.forget_results()
            memory.check()
        finally:
            device.synchronize()
            shared.close()

    def run_again(self, seeds: tuple[int, ...]) -> None:
        """Run seeds whose inputs have changed, as they were timed, into the first slots."""
        runs, timed = self._opened_runs(), self._timed
        assert timed is not None, "times were taken before"
        outputs = {s.name: timed.loaded.buffer_index(s.name) for s in runs.shared.outputs}
        with _faults():
            for seed in seeds:
                of_seed = [i for i in range(timed.pool.set_count) if timed.pool.seed_of(i) == seed]
                if not of_seed:  # a pool of few large sets
                    runs.loaded.run(seed * runs.shared.draw.slot_count)
                    continue
                index = secrets.choice(of_seed)
                timed.pool.refresh(index)
                addresses = timed.run(index)
                written = {n: addresses[i] for n, i in outputs.items() if i is not None}
                timed.pool.hand_back(index, 0, written)
        runs.loaded.forget_results()
        timed.loaded.forget_results()
        runs.memory.check()

    def fill_pool(self, *, wanted_bytes: int, limit_bytes: int) -> PoolReady:
        """Have the sets that are timed, bound to this plan."""
        pool = self._inputs.fill_pool(wanted_bytes=wanted_bytes, limit_bytes=limit_bytes)
        self._bound_to(pool)
        return PoolReady(set_count=pool.set_count, pool_bytes=pool.size_bytes)

    def time(self, request: TimeRequest, descriptors: tuple[int, ...]) -> TimeReply:
        """Take one measurement; `descriptors`: of what decides about calls, then of its guests."""
        timed = self._bound_to(self._inputs.pool)
        if timed.loaded.library is not None:
            with _faults():
                timed.loaded.library.choose_threads(partial(timed.run, 0))
        call_draws, *of_guests = descriptors
        guests = self._inputs.open_guests(request.guests, tuple(of_guests))
        with _closed_after(call_draws), _faults():
            taken = take_times(
                timed.sequence,
                timed.loaded,
                timed.pool,
                request,
                timed.preparation,
                idle=timed.pool.idle_outputs(but_last=self._holds_run),
                guests=guests,
                call_draws=call_draws,
            )
        runs = self._opened_runs()
        runs.memory.check()
        if runs.preparation is not None and request.settings.redraw_key:
            self._prepare_again(runs)  # it is of the weights that the last call had
        return taken

    def step_times(self, *, flush_bytes: int) -> StepTimes:
        """Measure how the time of the first set divides among kernels and library calls.

        Args:
            flush_bytes: Read before each call to empty the caches.
        """
        loaded = self._opened_runs().loaded if self._timed is None else self._timed.loaded
        with _faults():
            calls, call_count = _profile(loaded, flush_bytes)
        pairs = list(zip(loaded.steps, _medians(calls), strict=True))
        return StepTimes(
            own_ns=sum(time for step, time in pairs if not isinstance(step, LibraryCall)),
            library_ns=sum(time for step, time in pairs if isinstance(step, LibraryCall)),
            kernel_times=_kernel_times(loaded.steps, calls),
            call_count=call_count,
        )

    def drop(self) -> None:
        """Forget all that runs on its inputs."""
        self._runs, self._timed, self._holds_run = None, None, False

    def _prepare(
        self, shared: SharedSets, memory: PlanMemory, hidden: Iterable[CoveredRange]
    ) -> LoadedSequence | None:
        if not self.sequence.prepare:
            return None
        preparation = self._load(memory, self.sequence.prepare)
        for seed in range(shared.draw.seed_count):
            preparation.bind(seed, shared.addresses(seed, 0), seed=seed)
        with covered(self._opened.device, hidden):
            for seed in range(shared.draw.seed_count):
                preparation.run(seed)
        preparation.forget_results()
        memory.seal()
        return preparation

    def _prepare_again(self, runs: _Runs) -> None:
        preparation = runs.preparation
        assert preparation is not None, "asked for where there is one"
        with _faults():
            with covered(self._opened.device, self._hidden()):
                for seed in range(preparation.set_count):
                    preparation.run(seed)
            preparation.forget_results()
        runs.memory.seal()

    def _bound_to(self, pool: TimedSets) -> _TimedRuns:
        if self._timed is not None and self._timed.pool is pool:
            return self._timed
        memory = self._opened_runs().memory
        with _faults():
            loaded = self._on_pool(memory, self.sequence.steps, pool)
            preparation = None
            if self.sequence.prepare:
                preparation = self._on_pool(memory, self.sequence.prepare, pool)
            sequence = timed_sequence(self._opened, loaded)
        self._timed = _TimedRuns(
            pool=pool, preparation=preparation, loaded=loaded, sequence=sequence
        )
        return self._timed

    def _on_pool(
        self, memory: PlanMemory, steps: tuple[Step, ...], pool: TimedSets
    ) -> LoadedSequence:
        loaded = self._load(memory, steps)
        for index in range(pool.set_count):
            loaded.bind(index, pool.addresses(index), seed=pool.seed_of(index))
        return loaded

    def _load(self, memory: PlanMemory, steps: tuple[Step | Copy, ...]) -> LoadedSequence:
        return LoadedSequence(self._opened, self._program, steps, memory, tf32=self._tf32)

    def _opened_runs(self) -> _Runs:
        assert self._runs is not None, "the buffers come with the first run"
        return self._runs


@contextmanager
def _closed_after(descriptor: int) -> Iterator[None]:
    try:
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _faults() -> Iterator[None]:
    """Turn native errors of the candidate's launches into its fault."""
    import kernel_foundry_native as native

    try:
        yield
    except native.LaunchError as error:
        raise launch_fault(error) from error


def _profile(loaded: LoadedSequence, flush_bytes: int) -> tuple[list[list[float]], int]:
    """Each step's time on the first set, in a few calls, and how many were made.

    The first of all warms up.
    """
    until = time.monotonic() + _PROFILE_SECONDS
    first = loaded.native.profile(0, flush_bytes=flush_bytes)
    calls: list[list[float]] = []
    while len(calls) < _PROFILES and time.monotonic() < until:
        calls.append(loaded.native.profile(0, flush_bytes=flush_bytes))
    loaded.forget_results()
    return calls or [first], 1 + len(calls)


def _medians(calls: list[list[float]]) -> list[float]:
    return [statistics.median(times) for times in zip(*calls, strict=True)]


def _kernel_times(
    steps: tuple[Step | Copy, ...], calls: list[list[float]]
) -> tuple[KernelTime, ...]:
    """The time of each kernel, in order of first use; () when there are not several."""
    places: dict[str, list[int]] = {}
    for place, step in enumerate(steps):
        if isinstance(step, Launch):
            places.setdefault(step.kernel, []).append(place)
    if len(places) < 2:
        return ()
    return tuple(
        KernelTime(
            kernel=kernel,
            launches=len(own),
            median_ns=statistics.median(sum(times[place] for place in own) for times in calls),
        )
        for kernel, own in places.items()
    )
