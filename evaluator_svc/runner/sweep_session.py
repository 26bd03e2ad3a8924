"""All configurations of a sweep in one runner: inputs are mapped once, kernels come and go.

Each configuration runs into an output slot of its own and is timed in a small block; its outputs
are left for the judge.
"""

import dataclasses
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from evaluator_svc.binding import bind_workload
from evaluator_svc.messages.exchange import MeasurePlan
from evaluator_svc.messages.locked import TimeReply, TimeRequest, WorkloadNames
from evaluator_svc.messages.sweep import (
    SweepOpen,
    TimeAgainReply,
    TimeAgainRequest,
    TryReply,
    TryRequest,
)
from evaluator_svc.plan_inputs import plan_finding
from evaluator_svc.processes.locked_process import OpenDevice
from evaluator_svc.runner.covered import CoveredRange, covered
from evaluator_svc.runner.faults import CandidateFaultError, launch_fault, memory_faults
from evaluator_svc.runner.input_pool import TimedSets, make_pool
from evaluator_svc.runner.loaded_sequence import LoadedSequence
from evaluator_svc.runner.memory import PlanMemory, plan_memory
from evaluator_svc.runner.program import load_program
from evaluator_svc.runner.shared_sets import SharedSets
from evaluator_svc.runner.timing import take_times, timed_sequence
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.plan.errors import PlanError
from kernel_foundry.plan.parse import parse
from kernel_foundry.plan.sequence import LaunchSequence, Step
from kernel_foundry.plan.tree import Plan

_SUSPICIOUS: Final = 3.0
"""A checked run this much above the incumbent's upper bound is timed once; it may have been slow
only because a first launch is…"""
_CLEARLY_SLOWER: Final = 1.5
"""…and is timed no further when that one sample is this much above it too."""
_SLOWER: Final = 1.05
"""A block ends after three samples that are all this much above it."""


@dataclass(slots=True)
class _Workload:
    """One configuration on one workload."""

    program: Any
    sequence: LaunchSequence
    memory: PlanMemory
    run_ns: float = 0.0
    """Of the checked run, by the host's clock."""
    replay: LoadedSequence | None = None
    """On the pool's sets."""
    timed: Any = None
    """What is timed: the replay's own native sequence, or its graphs."""


class SweepSession:
    """The configurations of one candidate.

    Args:
        opened: The device.
        request: What to map.
        descriptors: Of the draws in host memory, in order.
    """

    def __init__(
        self, opened: OpenDevice, request: SweepOpen, descriptors: tuple[int, ...]
    ) -> None:
        self._opened = opened
        self._request = request
        self._shared: dict[str, SharedSets] = {}
        left = list(descriptors)
        for draw in request.draws:
            count = 0 if draw.handles else draw.seed_count
            own, left = tuple(left[:count]), left[count:]
            self._shared[draw.workload] = SharedSets(draw, own, opened.device)
        self._pools: dict[str, TimedSets] = {}
        self._plans: dict[str, Plan] = {}
        self._tried: dict[int, dict[str, _Workload]] = {}

    def attempt(self, request: TryRequest, objects: tuple[bytes, ...]) -> TryReply:
        """Load, run and time one configuration.

        Raises:
            CandidateFaultError: the device refuses it, or its plan does not fit.
        """
        for number in request.forget:
            self._tried.pop(number, None)
        started = time.perf_counter()
        workloads = self._load(request, objects)
        loaded = time.perf_counter()
        for name, workload in workloads.items():
            self._run_checked(name, workload)
        ran = time.perf_counter()
        timed = []
        for index, name in enumerate(self._request.timed):
            limit_ns = request.stop_above_ns[index] if request.stop_above_ns else 0.0
            timed.append(self._time_first(name, workloads[name], request.plan, limit_ns))
        ended = time.perf_counter()
        self._tried[request.number] = workloads
        return TryReply(
            load_ms=1e3 * (loaded - started),
            run_ms=1e3 * (ran - loaded),
            time_ms=1e3 * (ended - ran),
            timed=tuple(timed),
        )

    def time_again(self, request: TimeAgainRequest) -> TimeAgainReply:
        """Take another block of samples of a configuration that was tried.

        Raises:
            CandidateFaultError: a launch is refused.
        """
        started = time.perf_counter()
        workloads = self._tried[request.number]
        timed = tuple(
            self._time(name, workloads[name], request.plan, keep_count=0)
            for name in self._request.timed
        )
        return TimeAgainReply(timed=timed, time_ms=1e3 * (time.perf_counter() - started))

    def _load(self, request: TryRequest, objects: tuple[bytes, ...]) -> dict[str, _Workload]:
        programs = [
            load_program(self._opened.device, code, names)
            for code, names in zip(objects, request.kernels, strict=True)
        ]
        try:
            plan = self._plan(request.source.plan)
            sequences = [
                (names, unit, self._bound(plan, names, request))
                for names, unit in zip(
                    self._request.workloads, request.unit_of_workload, strict=True
                )
            ]
        except PlanError as error:
            raise CandidateFaultError(EvaluationOutcome.PLAN_ERROR, plan_finding(error)) from error
        return {
            names.workload: self._workload(programs[unit], sequence)
            for names, unit, sequence in sequences
        }

    def _plan(self, text: str) -> Plan:
        if text not in self._plans:
            self._plans[text] = parse(text)
        return self._plans[text]

    def _bound(self, plan: Plan, names: WorkloadNames, request: TryRequest) -> LaunchSequence:
        return bind_workload(
            plan,
            names,
            source=request.source,
            device=self._request.device,
            library_ops=self._request.library_ops,
        )

    def _workload(self, program: Any, sequence: LaunchSequence) -> _Workload:
        memory = plan_memory(self._opened.device, sequence, seed_count=1)
        return _Workload(program=program, sequence=sequence, memory=memory)

    def _run_checked(self, name: str, workload: _Workload) -> None:
        """Run into the checked slot of the shared buffer, and into all where nothing is timed.

        The checked slot is the last one; timed calls that are kept use the slots before it, or
        itself where there is no other.
        """
        shared = self._shared[name]
        count = shared.draw.slot_count
        slots = range(count - 1 if name in self._request.timed else 0, count)
        try:
            if workload.sequence.prepare:
                preparation = self._replay(workload, workload.sequence.prepare)
                preparation.bind(0, shared.addresses(0, 0), seed=0)
                with covered(self._opened.device, self._covered()):
                    preparation.run(0)
                preparation.forget_results()
                workload.memory.seal()
            replay = self._replay(workload, workload.sequence.steps)
            for index, slot in enumerate(slots):
                replay.bind(index, shared.addresses(0, slot), seed=0)
                started_ns = time.perf_counter_ns()
                replay.run(index)
                workload.run_ns = float(time.perf_counter_ns() - started_ns)
            replay.forget_results()
        except _native().LaunchError as error:
            raise launch_fault(error) from error
        workload.memory.check()

    def _covered(self) -> Iterator[CoveredRange]:
        """Yield all inputs and outputs that there are."""
        for name, shared in self._shared.items():
            yield from self._pools[name].covered() if name in self._pools else shared.covered()

    def _replay(self, workload: _Workload, steps: tuple[Step, ...]) -> LoadedSequence:
        return LoadedSequence(
            self._opened, workload.program, steps, workload.memory, tf32=self._request.tf32
        )

    def _time(
        self, name: str, workload: _Workload, plan: MeasurePlan, *, keep_count: int
    ) -> TimeReply:
        pool = self._pool(name)
        request = TimeRequest(workload=name, plan=plan, poison=True, keep_count=keep_count)
        try:
            if workload.replay is None:
                workload.replay = self._replay(workload, workload.sequence.steps)
                for index in range(pool.set_count):
                    workload.replay.bind(index, pool.addresses(index), seed=0)
                workload.timed = timed_sequence(self._opened, workload.replay)
            timed = take_times(workload.timed, workload.replay, pool, request)
        except _native().LaunchError as error:
            raise launch_fault(error) from error
        workload.memory.check()
        if keep_count:
            self._fill_slots(name, first=len(timed.kept))
        return timed

    def _time_first(
        self, name: str, workload: _Workload, plan: MeasurePlan, limit_ns: float
    ) -> TimeReply:
        """Take a first block, of few samples where the incumbent is out of reach."""
        if limit_ns and workload.run_ns > _SUSPICIOUS * limit_ns:
            once = dataclasses.replace(plan, min_samples=1, max_samples=1)
            timed = self._time(name, workload, once, keep_count=1)
            if min(timed.samples_ns) > _CLEARLY_SLOWER * limit_ns:
                return timed
        full = dataclasses.replace(plan, stop_above_ns=limit_ns, stop_factor=_SLOWER)
        keep_count = max(self._shared[name].draw.slot_count - 1, 1)
        return self._time(name, workload, full, keep_count=keep_count)

    def _fill_slots(self, name: str, *, first: int) -> None:
        """Fill the slots that no timed call was kept in with the checked run's outputs."""
        device, shared = self._opened.device, self._shared[name]
        checked = shared.draw.slot_count - 1
        if first >= checked:
            return
        for tensor in shared.outputs:
            for slot in range(first, checked):
                device.copy(
                    to=shared.address(0, tensor, slot),
                    from_=shared.address(0, tensor, checked),
                    size_bytes=tensor.size_bytes,
                )
        device.synchronize()

    def _pool(self, name: str) -> TimedSets:
        if name not in self._pools:
            with memory_faults("memory for the sets that are timed"):
                self._pools[name] = make_pool(
                    self._opened.device,
                    self._shared[name],
                    wanted_bytes=self._request.pool_wanted_bytes,
                    limit_bytes=self._request.pool_limit_bytes,
                )
        return self._pools[name]


def _native() -> Any:
    import kernel_foundry_native

    return kernel_foundry_native
