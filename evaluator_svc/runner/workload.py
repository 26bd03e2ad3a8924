"""One workload of a candidate in a runner: from the judge's buffers to the last sample.

Knows nothing of what results should be.
"""

import os
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from evaluator_svc.exchange import OUTPUT_SLOTS, Draw
from evaluator_svc.locked_process import OpenDevice
from evaluator_svc.messages import PoolReady, Share, Timed, TimeRequest
from evaluator_svc.runner.faults import fault, launch_fault
from evaluator_svc.runner.input_pool import TimedSets, make_pool
from evaluator_svc.runner.memory import PlanMemory
from evaluator_svc.runner.replay import Replay
from evaluator_svc.runner.shared_sets import SharedSets
from evaluator_svc.runner.timing import take_times, timed_sequence
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.plan.sequence import LaunchSequence, LibraryCall

_PROFILES: Final = 5
"""Runs whose median tells how the time divides."""


class Workload:
    """A bound plan and its buffers.

    Args:
        opened: The device.
        program: Holds the kernels.
        sequence: The bound plan.
    """

    def __init__(self, opened: OpenDevice, program: Any, sequence: LaunchSequence) -> None:
        self.sequence = sequence
        self._opened = opened
        self._program = program
        self._shared: SharedSets | None = None
        self._memory: PlanMemory | None = None
        self._preparation: Replay | None = None
        self._replay: Replay | None = None
        self._pool: TimedSets | None = None
        self._pool_replay: Replay | None = None
        self._timed: Any = None

    def open(self, draw: Draw, descriptors: tuple[int, ...]) -> None:
        """Take a draw's buffers, unless it has them, and run `prepare` for each seed's weights."""
        if self._shared is not None and self._shared.draw == draw:
            for descriptor in descriptors:
                os.close(descriptor)
            return
        self.drop()
        shared = self._shared = SharedSets(draw, descriptors, self._opened.device)
        memory = self._memory = self._allocate(draw.seed_count)
        with _faults():
            self._prepare(shared, memory)
            replay = self._replay = self._new_replay(memory)
            for seed in range(draw.seed_count):
                for slot in range(OUTPUT_SLOTS):
                    index = seed * OUTPUT_SLOTS + slot
                    replay.bind(index, shared.addresses(seed, slot), seed=seed)

    def run(self) -> None:
        """Run every seed `OUTPUT_SLOTS` times, each time into its own slot."""
        replay = self._bound()
        with _faults():
            for index in range(replay.set_count):
                replay.run(index)
        replay.forget_results()
        self._check_prepared()

    def run_without_kernels(self) -> None:
        """Make the library calls alone, into every seed's first slot."""
        replay = self._bound()
        with _faults():
            for index in range(0, replay.set_count, OUTPUT_SLOTS):
                replay.native.run_without_launches(index)
        replay.forget_results()

    def fill_pool(self, *, wanted_bytes: int, limit_bytes: int) -> PoolReady:
        """Make the sets that are timed, and bind them."""
        assert self._shared is not None, "a pool is filled from the buffers of a run"
        assert self._memory is not None, "a pool is filled from the buffers of a run"
        with _faults():
            pool = self._pool = make_pool(
                self._opened.device,
                self._shared,
                wanted_bytes=wanted_bytes,
                limit_bytes=limit_bytes,
            )
            replay = self._pool_replay = self._new_replay(self._memory)
            for index in range(pool.set_count):
                replay.bind(index, pool.addresses(index), seed=pool.seed_of(index))
            self._timed = timed_sequence(self._opened, replay)
        return PoolReady(set_count=pool.set_count, pool_bytes=pool.size_bytes)

    def time(self, request: TimeRequest) -> Timed:
        """Take one measurement."""
        assert self._pool is not None, "times are taken on a filled pool"
        assert self._pool_replay is not None, "times are taken on a filled pool"
        with _faults():
            timed = take_times(self._timed, self._pool_replay, self._pool, request)
        self._check_prepared()
        return timed

    def share(self) -> Share:
        """Measure how the time of the first set divides among own kernels and library calls."""
        replay = self._pool_replay or self._bound()
        with _faults():
            times = _profile(replay)
            prepared = self._profile_prepare()
        pairs = list(zip(replay.steps, times, strict=True))
        return Share(
            own_ns=sum(time for step, time in pairs if not isinstance(step, LibraryCall)),
            library_ns=sum(time for step, time in pairs if isinstance(step, LibraryCall)),
            prepare_ns=None if prepared is None else sum(prepared),
        )

    def _profile_prepare(self) -> list[float] | None:
        if self._preparation is None:
            return None
        times = _profile(self._preparation)
        assert self._memory is not None, "what was prepared has its memory"
        self._memory.seal()  # it was made anew, and sums by atomics differ in their last bits
        return times

    def drop(self) -> None:
        """Forget the pool and the shared buffers."""
        self._timed = self._pool_replay = self._pool = None
        self._replay = self._preparation = self._memory = None
        if self._shared is not None:
            self._shared.close()
            self._shared = None

    def _prepare(self, shared: SharedSets, memory: PlanMemory) -> None:
        if not self.sequence.prepare:
            return
        preparation = Replay(self._opened, self._program, self.sequence.prepare, memory)
        for seed in range(shared.draw.seed_count):
            preparation.bind(seed, shared.addresses(seed, 0), seed=seed)
            preparation.run(seed)
        preparation.forget_results()
        self._preparation = preparation
        memory.seal()

    def _check_prepared(self) -> None:
        """What `prepare` made is the same at every call: no call leaves something to the next."""
        name = self._memory.changed() if self._memory is not None else ""
        if name:
            raise fault(
                EvaluationOutcome.WRONG_RESULT,
                FindingKind.INPUT_MODIFIED,
                f"the kernels of launch changed {name}, which prepare has made",
                hint="write only to outputs and scratch",
            )

    def _new_replay(self, memory: PlanMemory) -> Replay:
        return Replay(self._opened, self._program, self.sequence.steps, memory)

    def _bound(self) -> Replay:
        assert self._replay is not None, "the buffers come with the first run"
        return self._replay

    def _allocate(self, seed_count: int) -> PlanMemory:
        import kernel_foundry_native as native

        try:
            return PlanMemory(self._opened.device, self.sequence.buffers, seed_count=seed_count)
        except (MemoryError, native.DriverError) as error:
            held = self.sequence.scratch_bytes + seed_count * self.sequence.prepared_bytes
            raise fault(
                EvaluationOutcome.PLAN_ERROR,
                FindingKind.MEMORY_LIMIT,
                f"{held} bytes of the plan's own memory are not to be had: {error}",
            ) from error


@contextmanager
def _faults() -> Iterator[None]:
    """Turn what native code says of the candidate's launches into its fault."""
    import kernel_foundry_native as native

    try:
        yield
    except native.LaunchError as error:
        raise launch_fault(error) from error


def _profile(replay: Replay) -> list[float]:
    """Return each step's time on the first set; the first run of all warms up."""
    replay.native.profile(0)
    runs = [replay.native.profile(0) for _ in range(_PROFILES)]
    replay.forget_results()
    return [statistics.median(times) for times in zip(*runs, strict=True)]
