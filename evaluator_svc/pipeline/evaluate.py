"""The order of the stages: one candidate from text to verdict.

Each step returns what it found or what became of the candidate; the first failure ends it.
Knows nothing of how processes are started and of gRPC.
"""

import dataclasses
import secrets
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from typing import Final

from evaluator_svc import behaviour, diagnosis
from evaluator_svc.device_site import DeviceSite
from evaluator_svc.diagnosis.performance import LaunchFacts
from evaluator_svc.exchange import SEED_COUNT
from evaluator_svc.messages import (
    BoundWorkload,
    CandidateFailed,
    Loaded,
    LoadRequest,
    Prepared,
    PrepareRequest,
    WorkloadNames,
)
from evaluator_svc.pipeline.build import (
    BuildFailed,
    BuildSettings,
    Built,
    build,
    check_objects,
    prepare,
)
from evaluator_svc.pipeline.record import EvaluationRecord
from evaluator_svc.pipeline.run import DrawnInputs, failure_of, load, run
from evaluator_svc.pipeline.timing import TimingSettings, WorkloadTimed, WorkloadTimer
from evaluator_svc.process import ChildProcess
from evaluator_svc.spare_pool import SparePool
from kernel_foundry.domain.admission import Admission, WorkloadAdmission
from kernel_foundry.domain.device import Peaks
from kernel_foundry.domain.evaluation import Evaluation, WorkloadResult
from kernel_foundry.domain.request import EvaluationRequest

_NO_OPERATORS: Final = ("placeholder", "output", "get_attr")
"""Nodes of a reference's graph that compute nothing."""


class CandidateEvaluation:
    """One candidate on its way through the stages; used once.

    Args:
        site: The device.
        request: What is asked.
        admission: The task as the device sees it; admitted.
        peaks: The device's measured limits.
    """

    def __init__(
        self, site: DeviceSite, request: EvaluationRequest, admission: Admission, peaks: Peaks
    ) -> None:
        self._site = site
        self._request = request
        self._admission = admission
        self._peaks = peaks
        self._record = EvaluationRecord(request, site.spec.id, admission)
        self._names = tuple(
            WorkloadNames(workload=w.workload, tensors=w.tensors, scalars=w.scalars)
            for w in admission.workloads
        )
        self._drawn: dict[str, Future[DrawnInputs]] = {}
        self._bound: dict[str, BoundWorkload] = {}
        self._kernel_facts: behaviour.KernelFacts | None = None

    def evaluate(self) -> Evaluation:
        """Return the verdict; raises only for failures of our own."""
        try:
            with ExitStack() as stack:
                with self._site.gate.shared():
                    runner = self._until_correct(stack)
                if isinstance(runner, Evaluation):
                    return runner
                with self._site.gate.exclusive():
                    failure = self._take_times(runner)
            if failure is not None:
                return self._record.failed(failure)
            self._finish()
            return self._record.passed()
        finally:
            self._release_draws()

    def _until_correct(self, stack: ExitStack) -> ChildProcess | Evaluation:
        """Do all stages but timing; return the runner, ready to be timed."""
        # The judge draws while the builder builds; it may still be importing torch.
        self._start_draw(self._admission.workloads[0])
        with _taken(self._site.builders) as builder:
            prepared = self._prepare(builder)
            if isinstance(prepared, CandidateFailed):
                return self._record.failed(prepared)
            built = self._build(builder, prepared)
        if isinstance(built, CandidateFailed):
            return self._record.failed(built)
        runner = stack.enter_context(_taken(self._site.runners))
        loaded = self._bind(runner, prepared, built)
        if isinstance(loaded, CandidateFailed):
            return self._record.failed(loaded)
        self._describe(prepared, built, loaded)
        self._add_evidence()
        failure = self._verify_all(runner)
        return runner if failure is None else self._record.failed(failure)

    def _prepare(self, builder: ChildProcess) -> Prepared | CandidateFailed:
        request = PrepareRequest(
            text=self._request.text,
            configuration=self._request.configuration,
            device=self._site.spec,
            workloads=self._names,
        )
        started = time.perf_counter()
        prepared = prepare(builder, request)
        wall_ms = 1e3 * (time.perf_counter() - started)
        if isinstance(prepared, CandidateFailed):
            self._record.add_stage_time("parse", wall_ms)
            return prepared
        self._record.add_stage_time("parse", wall_ms - prepared.policy_ms)
        self._record.add_stage_time("policy", prepared.policy_ms)
        self._record.set_source(prepared.source)
        return prepared

    def _build(self, builder: ChildProcess, prepared: Prepared) -> Built | CandidateFailed:
        site = self._site
        settings = BuildSettings(
            device=site.spec,
            compiler_version=site.compiler_version,
            seconds=self._request.limits.build_seconds,
            memory_bytes=site.settings.builder_memory_bytes,
        )
        with self._record.stage("build"):
            built = build(builder, prepared, site.objects, settings)
        self._record.compile = built.report
        if isinstance(built, BuildFailed):
            return built.failure
        with self._record.stage("policy"):
            refused = check_objects(self._machine_codes(built), prepared)
        return refused if refused is not None else built

    def _describe(self, prepared: Prepared, built: Built, loaded: Loaded) -> None:
        self._bound = {bound.workload: bound for bound in loaded.workloads}
        bound = loaded.workloads[0]
        objects = self._machine_codes(built)
        graph = self._admission.workloads[0].graph
        with self._record.stage("behaviour"):
            self._kernel_facts = behaviour.facts_of(
                prepared.source.device_code, prepared.source.language, objects
            )
            self._record.measures = behaviour.measures(
                device_code=prepared.source.device_code,
                language=prepared.source.language,
                objects=objects,
                launch_count=bound.launch_count,
                scratch_count=bound.scratch_count,
                reference_op_count=sum(n.op not in _NO_OPERATORS for n in graph),
            )

    def _machine_codes(self, built: Built) -> tuple[bytes, ...]:
        """Return the object code that can be read; the null device's is no code at all."""
        return () if self._site.spec.id.startswith("null:") else built.codes

    def _bind(
        self, runner: ChildProcess, prepared: Prepared, built: Built
    ) -> Loaded | CandidateFailed:
        request = LoadRequest(
            source=prepared.source,
            device=self._site.spec,
            workloads=self._names,
            kernels=tuple(unit.kernels for unit in prepared.units),
            unit_of_workload=prepared.unit_of_workload,
        )
        with self._record.stage("bind"):
            return load(runner, request, built.codes)

    def _start_draw(self, workload: WorkloadAdmission) -> Future[DrawnInputs]:
        name = workload.workload
        if name not in self._drawn:
            self._drawn[name] = self._site.helpers.submit(self._draw, name)
        return self._drawn[name]

    def _draw(self, workload: str) -> DrawnInputs:
        # Secret and fresh for every evaluation: nothing can be prepared for them.
        seeds = tuple(secrets.randbits(31) for _ in range(SEED_COUNT))
        draw, descriptors = self._site.judge.draw(
            self._request.task, workload, self._admission.tolerance, seeds
        )
        return DrawnInputs(draw=draw, descriptors=descriptors)

    def _verify_all(self, runner: ChildProcess) -> CandidateFailed | None:
        with self._record.stage("correctness"):
            for workload in self._admission.workloads:
                failure = self._verify(runner, workload)
                if failure is not None:
                    return failure
        return None

    def _verify(self, runner: ChildProcess, workload: WorkloadAdmission) -> CandidateFailed | None:
        drawn = self._start_draw(workload).result()
        failure = run(runner, drawn, seconds=self._request.limits.run_seconds)
        if failure is not None:
            return failure
        verdict = self._site.judge.verify(drawn.draw.draw)
        self._record.set_workload(
            WorkloadResult(
                workload=workload.workload,
                held_out=workload.held_out,
                correctness=verdict.correctness,
                sol_ns=workload.sol_ns,
            )
        )
        failure = failure_of(verdict, workload.workload)
        if failure is None:
            self._record.add_findings(verdict.findings)
        return failure

    def _take_times(self, runner: ChildProcess) -> CandidateFailed | None:
        timed = [w for w in self._admission.workloads if not w.held_out]
        with self._record.stage("timing"):
            for index, workload in enumerate(timed):
                result = self._time_one(runner, workload, index)
                if isinstance(result, CandidateFailed):
                    return result
                self._keep_times(workload, result)
                if result.failure is not None:
                    return result.failure
        return None

    def _time_one(
        self, runner: ChildProcess, workload: WorkloadAdmission, index: int
    ) -> WorkloadTimed | CandidateFailed:
        request, settings = self._request, self._site.settings
        incumbents = request.stop_above_ns
        timer = WorkloadTimer(
            runner,
            self._site.judge,
            draw=self._drawn[workload.workload].result().draw,
            admission=workload,
            settings=TimingSettings(
                device=self._site.spec,
                peaks=self._peaks,
                seconds=request.limits.timing_seconds,
                warm_seconds=settings.warm_seconds,
                run_seconds=request.limits.run_seconds,
                pool_limit_bytes=settings.pool_limit_bytes,
                stop_above_ns=incumbents[index] if index < len(incumbents) else 0.0,
                fresh_baselines=request.fresh_baselines,
            ),
        )
        return timer.time()

    def _keep_times(self, workload: WorkloadAdmission, timed: WorkloadTimed) -> None:
        result = dataclasses.replace(
            self._record.workload(workload.workload),
            timing=timed.timing,
            warm_timing=timed.warm_timing,
            baselines=timed.baselines,
        )
        self._record.set_workload(result)
        self._record.add_fact(
            f"pool of {workload.workload}",
            f"{timed.pool.set_count} input sets, {timed.pool.pool_bytes} bytes; "
            f"{timed.flush_bytes} bytes read between samples to empty the caches",
        )

    def _finish(self) -> None:
        with self._record.stage("diagnosis"):
            for workload in self._admission.workloads:
                if not workload.held_out:
                    self._diagnose(workload)

    def _diagnose(self, workload: WorkloadAdmission) -> None:
        bound = self._bound[workload.workload]
        findings = diagnosis.performance_findings(
            self._record.workload(workload.workload),
            workload,
            self._site.spec,
            self._peaks,
            kernels=self._kernel_facts,
            launches=LaunchFacts(
                launch_count=bound.launch_count,
                group_count=bound.group_count,
                group_size=bound.group_size,
            ),
        )
        self._record.add_findings(findings)

    def _add_evidence(self) -> None:
        site, record = self._site, self._record
        facts = site.judge.facts()
        record.add_fact("device", f"{site.spec.name}, driver {site.spec.driver_version}")
        record.add_fact("compiler", site.compiler_version)
        record.add_fact("threads", f"{site.settings.thread_count}, device and torch alike")
        record.add_fact("seeds", f"{SEED_COUNT} for each workload, fresh and secret")
        record.add_fact("clock", "host's steady clock, first submit to completion")
        record.add_fact("isolation", ", ".join(site.isolation.mechanisms) or "none")
        record.add_fact("judge process", str(facts.process_id))
        for fact in facts.facts:
            record.add_fact(fact.name, fact.value)

    def _release_draws(self) -> None:
        for future in self._drawn.values():
            self._site.helpers.submit(_release, self._site, future)


def _release(site: DeviceSite, future: "Future[DrawnInputs]") -> None:
    if future.exception() is None:
        drawn = future.result()
        drawn.close()
        site.judge.release(drawn.draw.draw)


@contextmanager
def _taken(pool: SparePool) -> Iterator[ChildProcess]:
    """Use a ready process once, then end it."""
    process = pool.take()
    try:
        yield process
    finally:
        process.kill()
