"""An evaluator without devices: every candidate passes, at once, with a time from its digest."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace

from kernel_foundry.domain.admission import Admission, WorkloadAdmission
from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.check import Trust
from kernel_foundry.domain.device import (
    Availability,
    Capabilities,
    DeviceSpec,
    IsolationReport,
)
from kernel_foundry.domain.digest import content_digest
from kernel_foundry.domain.evaluation import (
    Baseline,
    CompileReport,
    Correctness,
    Evaluation,
    EvaluationOutcome,
    Setting,
    StopReason,
    Timing,
    WorkloadResult,
)
from kernel_foundry.domain.fitness import fitness_bounds
from kernel_foundry.domain.foreign import ForeignRequest
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.measures import LEVELS, Measures
from kernel_foundry.domain.probe import Probe
from kernel_foundry.domain.profile import Profile
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.sweep import (
    ConfigurationResult,
    ConfigurationTimes,
    ConfigurationTiming,
    SweepRequest,
    Validity,
)
from kernel_foundry.domain.task import Task, Tolerance, Workload
from kernel_foundry.errors import BackendUnavailableError, TaskInvalidError
from kernel_foundry.plan.configuration import configurations, settings_of
from kernel_foundry.plan.parse import parse

FAKE_DEVICE = DeviceSpec(
    id="fake:0",
    language=Language.SYCL,
    name="fake device",
    vendor="none",
    architecture="none",
    driver_version="0",
    compute_units=1,
    sub_group_size=16,
    max_block=1024,
    shared_bytes=65536,
    memory_bytes=1 << 30,
    cache_bytes=1 << 20,
)
_BASELINE_NS = 1e6
_BOUND_NS = 1e5


async def _one_turn() -> None:
    """Let other tasks run, as every real evaluation does; it can be cancelled here."""
    await asyncio.sleep(0)


class FakeEvaluator:
    """Implements `kernel_foundry.ports.Evaluator`.

    Args:
        before_evaluate: Awaited first in `evaluate`, so that a test can hold it there.
        device: What it says that it has.
    """

    def __init__(
        self,
        before_evaluate: Callable[[], Awaitable[None]] = _one_turn,
        device: DeviceSpec = FAKE_DEVICE,
    ) -> None:
        self._before_evaluate = before_evaluate
        self._device = device

    async def capabilities(self) -> Capabilities:
        """Return the one fake device."""
        return Capabilities(
            devices=(self._device,),
            availability=(Availability(kind="fake", available=True),),
            isolation=IsolationReport(mechanisms=(), missing=("nothing is run",)),
        )

    async def admit(self, task: Task, device: str = "") -> Admission:
        """Admit every task whose reference defines `Model`."""
        _require_device(device, self._device)
        if "class Model" not in task.reference:
            raise TaskInvalidError(f"task {task.name}: no class Model", task=task.name)
        return Admission(
            task=task.digest,
            device=self._device,
            workloads=tuple(_admitted(workload) for workload in task.workloads),
            tolerance=task.tolerance or Tolerance(rtol=1e-4, atol=1e-5),
        )

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Judge by the source alone."""
        await self._before_evaluate()
        admission = await self.admit(request.task, request.device)
        number = int(request.source.digest[:8], 16)
        time_ns = _time_ns(request.source, request.configuration)
        evaluation = Evaluation(
            candidate=request.source.digest,
            task=request.task.digest,
            device=admission.device.id,
            outcome=EvaluationOutcome.PASSED,
            configuration=request.configuration,
            compile=CompileReport(log="", compile_ns=0.0, cached=True, object_bytes=1),
            workloads=tuple(_result(w, time_ns) for w in request.task.workloads),
            measures=Measures(
                memory=number % LEVELS,
                algorithm=number // LEVELS % LEVELS,
                synchronization=number // LEVELS**2 % LEVELS,
            ),
        )
        yardsticks = {workload.name: _BASELINE_NS for workload in request.task.workloads}
        certain, best = fitness_bounds(evaluation, yardsticks)
        profile = None if request.profile_seconds is None else _profile(evaluation, time_ns)
        return replace(evaluation, fitness=certain, optimistic_fitness=best, profile=profile)

    async def evaluate_foreign(self, request: ForeignRequest) -> Evaluation:
        """Pass everything, at a time that follows from the source."""
        admission = await self.admit(request.task, request.device)
        time_ns = 1e3 + int(request.source.digest[:4], 16)
        return Evaluation(
            candidate=request.source.digest,
            task=request.task.digest,
            device=admission.device.id,
            outcome=EvaluationOutcome.PASSED,
            workloads=tuple(_result(w, time_ns) for w in request.task.workloads),
            trust=Trust.FOREIGN,
        )

    async def sweep(self, request: SweepRequest) -> AsyncGenerator[ConfigurationResult, None]:
        """Yield the configurations that WHERE allows; times follow from source and values."""
        await self._before_evaluate()
        await self.admit(request.task, request.device)
        settings = [settings_of(found) for found in configurations(parse(request.source.plan))]
        tried = _in_order(settings, request)
        for configuration in tried:
            await asyncio.sleep(0)
            yield _swept(request, configuration, len(tried))

    async def probe(self, device: str = "") -> tuple[Probe, ...]:
        """Return the one thing that can be said of no device."""
        _require_device(device, self._device)
        return (Probe(name="device.fake", passed=True, detail="nothing is run"),)

    async def close(self) -> None:
        """Do nothing: nothing is held."""


def _profile(evaluation: Evaluation, time_ns: float) -> Profile:
    return Profile(
        workload=next(w.workload for w in evaluation.workloads if not w.held_out),
        call_ns=time_ns,
        minimal_bytes=1,
        reason="nothing is run",
    )


def _require_device(device: str, known: DeviceSpec) -> None:
    if device not in ("", known.id):
        raise BackendUnavailableError(f"no device {device!r} here, only {known.id}", device=device)


def _admitted(workload: Workload) -> WorkloadAdmission:
    return WorkloadAdmission(
        workload=workload.name,
        held_out=workload.held_out,
        tensors=(),
        scalars=(),
        graph=(),
        flops=1,
        minimal_bytes=1,
        traffic_bound_ns=_BOUND_NS,
        arithmetic_estimate_ns=_BOUND_NS,
        arithmetic_unit="FMA",
        baselines=() if workload.held_out else (_baseline(),),
    )


def _in_order(
    settings: list[tuple[Setting, ...]], request: SweepRequest
) -> list[tuple[Setting, ...]]:
    wanted = [c.settings for c in request.order if c.settings in settings]
    ordered = dict.fromkeys((*settings[:1], *wanted, *settings))
    return list(ordered)[: request.max_configurations]


def _swept(
    request: SweepRequest, configuration: tuple[Setting, ...], total: int
) -> ConfigurationResult:
    time_ns = _time_ns(request.source, configuration)
    return ConfigurationResult(
        configuration=configuration,
        validity=Validity.CORRECT,
        outcome=EvaluationOutcome.PASSED,
        times=ConfigurationTimes(),
        timings=tuple(
            ConfigurationTiming(workload=w.name, timing=_timing(time_ns), weight=w.weight)
            for w in request.task.workloads
            if not w.held_out
        ),
        speedup=_BASELINE_NS / time_ns,
        finished_unix_s=0.0,
        total=total,
    )


def _time_ns(source: KernelSource, configuration: tuple[Setting, ...]) -> float:
    """A time that the source and the configuration decide."""
    blocks = (source.device_code.strip(), source.plan.strip())
    values = [f"{s.name}={s.value}" for s in configuration]
    number = int(content_digest(*blocks, *values)[:8], 16)
    return _BOUND_NS + number % 1_000_000


def _result(workload: Workload, time_ns: float) -> WorkloadResult:
    correctness = Correctness(
        max_abs_error=0.0,
        max_rel_error=0.0,
        mismatch_count=0,
        element_count=1,
        first_mismatch=None,
        seed_count=1,
        run_count=1,
        bitwise_reproducible=True,
    )
    if workload.held_out:
        return WorkloadResult(workload=workload.name, held_out=True, correctness=correctness)
    return WorkloadResult(
        workload=workload.name,
        correctness=correctness,
        timing=_timing(time_ns),
        weight=workload.weight,
        baselines=(_baseline(),),
        traffic_bound_ns=_BOUND_NS,
        arithmetic_estimate_ns=_BOUND_NS,
    )


def _baseline() -> Baseline:
    return Baseline(name="eager", timing=_timing(_BASELINE_NS))


def _timing(time_ns: float) -> Timing:
    return Timing(
        samples_ns=(time_ns,) * 3,
        median_ns=time_ns,
        ci95_ns=(time_ns, time_ns),
        stop_reason=StopReason.CONVERGED,
        is_cold=True,
        warmup_count=0,
        discarded_count=0,
    )
