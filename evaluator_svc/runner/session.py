"""One candidate in a runner: its programs, its bound plan, its buffers.

Knows nothing of channels, nor of what results should be.
"""

import math
import time
from dataclasses import dataclass
from typing import Any

from evaluator_svc.exchange import OUTPUT_SLOTS
from evaluator_svc.locked_process import OpenDevice
from evaluator_svc.messages import (
    BoundWorkload,
    Done,
    Loaded,
    LoadRequest,
    PoolReady,
    PoolRequest,
    RunRequest,
    Timed,
    TimeRequest,
    WorkloadNames,
)
from evaluator_svc.plan_inputs import device_limits, name_table, plan_finding
from evaluator_svc.runner.input_pool import InputPool
from evaluator_svc.runner.replay import Replay
from evaluator_svc.runner.shared_sets import SharedSets
from evaluator_svc.runner.timing import take_times
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import Finding, FindingKind, Severity
from kernel_foundry.plan.bind import bind
from kernel_foundry.plan.configuration import constants, parse_overrides
from kernel_foundry.plan.errors import PlanError
from kernel_foundry.plan.parse import parse
from kernel_foundry.plan.sequence import Launch, LaunchSequence
from kernel_foundry.plan.signature import kernels
from kernel_foundry.plan.tree import Plan


class CandidateFaultError(Exception):
    """The candidate is at fault.

    Args:
        outcome: What becomes of it.
        finding: Why.
    """

    def __init__(self, outcome: EvaluationOutcome, kind: FindingKind, message: str) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.finding = Finding(kind=kind, severity=Severity.ERROR, message=message)


@dataclass(slots=True)
class _Workload:
    """What is known of one workload so far."""

    program: Any
    sequence: LaunchSequence
    replay: Replay | None = None
    shared: SharedSets | None = None
    pool: InputPool | None = None
    pool_replay: Replay | None = None


class Session:
    """A candidate from load to last sample.

    Args:
        opened: The device.
    """

    def __init__(self, opened: OpenDevice) -> None:
        self._opened = opened
        self._workloads: dict[str, _Workload] = {}

    def load(self, request: LoadRequest, objects: tuple[bytes, ...]) -> Loaded:
        """Load every unit's object code and bind the plan to every workload.

        Raises:
            CandidateFaultError: the device refuses the code, or the plan does not fit.
        """
        started = time.perf_counter()
        programs = [
            self._program(code, names) for code, names in zip(objects, request.kernels, strict=True)
        ]
        loaded = time.perf_counter()
        try:
            plan = parse(request.source.plan)
            for workload, unit in zip(request.workloads, request.unit_of_workload, strict=True):
                self._workloads[workload.workload] = _Workload(
                    program=programs[unit], sequence=_bind(plan, workload, request)
                )
        except PlanError as error:
            fault = CandidateFaultError(EvaluationOutcome.PLAN_ERROR, FindingKind.PLAN, str(error))
            fault.finding = plan_finding(error)
            raise fault from error
        return Loaded(
            workloads=tuple(_summary(name, w.sequence) for name, w in self._workloads.items()),
            load_ms=1e3 * (loaded - started),
            bind_ms=1e3 * (time.perf_counter() - loaded),
        )

    def run(self, request: RunRequest, descriptors: tuple[int, ...]) -> Done:
        """Run every seed `OUTPUT_SLOTS` times, each time into its own slot.

        Raises:
            CandidateFaultError: a launch is refused, or scratch memory is not to be had.
        """
        draw = request.draw
        workload = self._workloads[draw.workload]
        workload.shared = SharedSets(draw, descriptors)
        workload.replay = self._replay(workload)
        for seed in range(draw.seed_count):
            for slot in range(OUTPUT_SLOTS):
                index = seed * OUTPUT_SLOTS + slot
                workload.replay.bind(index, workload.shared.addresses(seed, slot))
                self._launch(workload.replay, index)
        return Done()

    def fill_pool(self, request: PoolRequest) -> PoolReady:
        """Make the private sets that are timed, and bind them.

        Raises:
            CandidateFaultError: scratch memory is not to be had.
        """
        workload = self._workloads[request.workload]
        assert workload.shared is not None, "a pool is filled from the buffers of a run"
        workload.pool = InputPool(
            self._opened.device,
            workload.shared,
            wanted_bytes=request.wanted_bytes,
            limit_bytes=request.limit_bytes,
        )
        workload.pool_replay = self._replay(workload)
        for index in range(workload.pool.set_count):
            workload.pool_replay.bind(index, workload.pool.addresses(index))
        return PoolReady(set_count=workload.pool.set_count, pool_bytes=workload.pool.size_bytes)

    def time(self, request: TimeRequest) -> Timed:
        """Take one measurement.

        Raises:
            CandidateFaultError: a launch is refused.
        """
        workload = self._workloads[request.workload]
        assert workload.pool is not None, "times are taken on a filled pool"
        assert workload.pool_replay is not None, "times are taken on a filled pool"
        native = _native()
        try:
            return take_times(workload.pool_replay, workload.pool, request)
        except native.LaunchError as error:
            raise _launch_fault(error) from error

    def drop(self, workload: str) -> Done:
        """Forget a workload's pool and shared buffers."""
        state = self._workloads[workload]
        if state.shared is not None:
            state.shared.close()
        state.replay = state.pool_replay = state.pool = state.shared = None
        return Done()

    def _program(self, code: bytes, names: tuple[str, ...]) -> Any:
        native = _native()
        try:
            return self._opened.device.load(code=code, kernels=list(names))
        except native.NativeError as error:
            raise CandidateFaultError(
                EvaluationOutcome.LAUNCH_ERROR,
                FindingKind.LAUNCH_RESOURCE,
                f"the device refuses the object code: {error}",
            ) from error

    def _replay(self, workload: _Workload) -> Replay:
        native = _native()
        try:
            return Replay(self._opened, workload.program, workload.sequence)
        except (MemoryError, native.DriverError) as error:
            raise CandidateFaultError(
                EvaluationOutcome.PLAN_ERROR,
                FindingKind.MEMORY_LIMIT,
                f"{workload.sequence.scratch_bytes} bytes of scratch are not to be had: {error}",
            ) from error

    def _launch(self, replay: Replay, index: int) -> None:
        native = _native()
        try:
            replay.run(index)
        except native.LaunchError as error:
            raise _launch_fault(error) from error


def _native() -> Any:
    import kernel_foundry_native

    return kernel_foundry_native


def _launch_fault(error: Exception) -> CandidateFaultError:
    return CandidateFaultError(
        EvaluationOutcome.LAUNCH_ERROR, FindingKind.LAUNCH_RESOURCE, str(error)
    )


def _bind(plan: Plan, workload: WorkloadNames, request: LoadRequest) -> LaunchSequence:
    source = request.source
    configuration = parse_overrides(plan, (f"{s.name}={s.value}" for s in source.configuration))
    table = name_table(workload)
    limits = device_limits(request.device)
    macros = {**configuration, **constants(plan, table, configuration, limits)}
    return bind(
        plan,
        kernels(source.device_code, source.language.value, macros),
        names=table,
        configuration=configuration,
        device=limits,
        language=source.language.value,
    )


def _summary(name: str, sequence: LaunchSequence) -> BoundWorkload:
    launches = [step for step in sequence.steps if isinstance(step, Launch)]
    sizes = [(math.prod(launch.grid), math.prod(launch.block)) for launch in launches]
    group_count, group_size = max(sizes, key=math.prod, default=(0, 0))
    return BoundWorkload(
        workload=name,
        launch_count=len(launches),
        group_count=group_count,
        group_size=group_size,
        scratch_count=sum(buffer.kind == "scratch" for buffer in sequence.buffers),
        scratch_bytes=sequence.scratch_bytes,
        kernels=sequence.kernels,
    )
