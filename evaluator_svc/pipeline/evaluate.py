"""The order of the stages: one candidate from text to verdict; the first failure ends it."""

import dataclasses
import secrets
from concurrent.futures import Future
from contextlib import ExitStack

from evaluator_svc import diagnosis
from evaluator_svc.behaviour import KernelFacts
from evaluator_svc.devices.site import DeviceSite
from evaluator_svc.diagnosis import LaunchFacts
from evaluator_svc.hardware.host_load import LoadMeter
from evaluator_svc.messages.exchange import SEED_COUNT, RunComparison
from evaluator_svc.messages.judge import PrecisionReply
from evaluator_svc.messages.locked import (
    BoundWorkload,
    CandidateFailure,
    LoadReply,
    LoadRequest,
    WorkloadNames,
)
from evaluator_svc.pipeline.admission import with_baselines
from evaluator_svc.pipeline.arithmetic import arithmetic_text
from evaluator_svc.pipeline.arithmetic_limit import arithmetic_check
from evaluator_svc.pipeline.baseline_check import BaselineComparison, check_baselines, compared
from evaluator_svc.pipeline.built_candidate import (
    BuiltCandidate,
    describe,
    operator_count,
    read_and_build,
)
from evaluator_svc.pipeline.decoy import own_kernels_check, run_without_kernels
from evaluator_svc.pipeline.elements import judge_elements
from evaluator_svc.pipeline.evaluation_memory import EvaluationMemory, MemoryWish
from evaluator_svc.pipeline.facts import verdict_facts
from evaluator_svc.pipeline.generated_sizes import GeneratedTrials, has_one_seed
from evaluator_svc.pipeline.layout import layout_limit_ns, prepare_findings
from evaluator_svc.pipeline.memory_plan import pool_limit
from evaluator_svc.pipeline.precision import PrecisionResult, judge_precision
from evaluator_svc.pipeline.record import EvaluationRecord, fastest_baselines_ns
from evaluator_svc.pipeline.run import (
    DrawnInputs,
    damage_checks,
    failure_of,
    load,
    release_all,
)
from evaluator_svc.pipeline.runs import run_and_judge
from evaluator_svc.pipeline.schedule import run_in_reverse
from evaluator_svc.pipeline.timed_calls import judge_timed_calls
from evaluator_svc.pipeline.timing import TimingSettings, WorkloadTimer, WorkloadTimes
from evaluator_svc.pipeline.tools import Rerun, explain_failure, profile, sanitized
from evaluator_svc.pipeline.value_ranges import RangeTrials
from evaluator_svc.policy import ObjectFacts
from evaluator_svc.processes.process import ChildProcess
from kernel_foundry.domain.admission import Admission, WorkloadAdmission
from kernel_foundry.domain.device import Peaks
from kernel_foundry.domain.evaluation import Baseline, Evaluation, EvaluationOutcome, WorkloadResult
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.request import EvaluationRequest


class CandidateEvaluation:
    """One candidate on its way through the stages; used once.

    Args:
        site: The device.
        request: What is asked.
        admission: The task as the device sees it; admitted.
        peaks: The device's measured limits.
        wish: What is known of the memory that it takes.
    """

    def __init__(
        self,
        site: DeviceSite,
        request: EvaluationRequest,
        admission: Admission,
        peaks: Peaks,
        wish: MemoryWish,
    ) -> None:
        self._site = site
        self._judge = site.judge
        """The one that draws: a successor, should it die, knows nothing of these draws."""
        self._request = request
        self._admission = admission.without_generated
        self._generated = tuple(w for w in admission.workloads if w.is_generated)
        self._peaks = peaks
        self._record = EvaluationRecord(request, site.spec.id, fastest_baselines_ns(admission))
        self._names = tuple(
            WorkloadNames(
                workload=w.workload,
                tensors=w.tensors,
                scalars=w.scalars,
                is_optional=w.is_generated,
            )
            for w in (*self._admission.workloads, *self._generated)
        )
        self._memory = EvaluationMemory(site, admission, wish)
        self._ranges = RangeTrials(
            site,
            self._judge,
            request,
            admission,
            self._record,
            left_out=lambda: self._memory.plan.without_ranges,
        )
        self._drawn: dict[str, Future[DrawnInputs]] = {}
        self._bound: dict[str, BoundWorkload] = {}
        self._kernel_facts: KernelFacts | None = None
        self._facts: ObjectFacts | None = None
        """What the object code computes in; None: it cannot be read."""
        self._uses_library = False
        self._rerun: Rerun | None = None
        """Set where the vendor's tools may and can look at the candidate."""
        self._runner: ChildProcess | None = None
        self._pool_bytes = 0

    def evaluate(self) -> Evaluation:
        """Return the verdict; raises only for failures of our own.

        Raises:
            DeviceMemoryError: the device has too little memory.
            MoreMemoryError: the plan's own memory is not free at present.
        """
        try:
            with ExitStack() as stack:
                runner = self._until_correct(stack)
                if isinstance(runner, Evaluation):
                    return runner
                with self._site.lock.exclusive():
                    failure = self._take_times(runner)
                    if failure is None:
                        self._profile()
                        failure = self._sanitize()
                if failure is None:
                    with self._site.lock.shared():
                        failure = self._other_trials(runner)
            if failure is not None:
                return self._record.failed(failure)
            self._finish()
            draws = [future.result().draw.draw for future in self._all_drawn()]
            facts = self._memory.facts(self._judge, draws, pool_bytes=self._pool_bytes)
            self._record.add_facts(facts)
            return self._record.passed()
        finally:
            self._release_draws()

    def _until_correct(self, stack: ExitStack) -> ChildProcess | Evaluation:
        """Do all stages but timing; return the runner, ready to be timed."""
        site = self._site
        with ExitStack() as held:
            # Memory before the lock: whoever waits for memory must not hold the lock.
            if site.shares_cores:
                self._memory.take()
                held.enter_context(site.lock.shared())
                # The judge draws while the builder builds; it may still be importing torch.
                self._start_draw(self._admission.workloads[0])
            with site.builders.taken() as builder:
                candidate = read_and_build(builder, site, self._request, self._names, self._record)
            if isinstance(candidate, CandidateFailure):
                return self._record.failed(candidate)
            if not site.shares_cores:
                self._memory.take()
                # A draw runs on the device, and would disturb whoever takes times there.
                held.enter_context(site.lock.shared())
                self._start_draw(self._admission.workloads[0])
            uses_library = candidate.prepared.uses_library
            runners = site.library_runners if uses_library else site.runners
            self._runner = runner = stack.enter_context(runners.taken())
            failure = self._bind(runner, candidate) or self._memory.reserve(self._bound.values())
            failure = failure or self._verify_all(runner)
            if failure is None:
                failure = self._audit_precision(self._admission.workloads)
                failure = failure or self._try_schedule(runner)
                failure = failure or self._ranges.run(runner, self._judge_precision, binding=True)
                self._name_arithmetic()
            self._add_evidence()
        return runner if failure is None else self._record.failed(failure)

    def _other_trials(self, runner: ChildProcess) -> CandidateFailure | None:
        """Try the candidate where a refusal of its own is none of its faults."""
        trials = GeneratedTrials(self._generated, self._record, self._bound)
        failure = trials.run(lambda workload: self._try_generated(runner, workload))
        if failure is not None or trials.is_runner_lost:
            return failure
        return self._ranges.run(runner, self._judge_precision, binding=False)

    def _try_generated(
        self, runner: ChildProcess, workload: WorkloadAdmission
    ) -> CandidateFailure | None:
        with self._record.stage("correctness"):
            failure = self._verify(runner, workload)
        is_alone = has_one_seed(workload)
        return failure or (None if is_alone else self._audit_precision((workload,)))

    def _bind(self, runner: ChildProcess, candidate: BuiltCandidate) -> CandidateFailure | None:
        prepared = candidate.prepared
        pairs = [
            (names, unit)
            for names, unit in zip(self._names, prepared.unit_of_workload, strict=True)
            if unit not in candidate.built.left_out
        ]
        request = LoadRequest(
            source=prepared.source,
            device=self._site.spec,
            workloads=tuple(names for names, _ in pairs),
            kernels=tuple(unit.kernels for unit in prepared.units),
            unit_of_workload=tuple(unit for _, unit in pairs),
            library_ops=self._request.task.library_ops,
            tf32=self._request.task.tf32,
        )
        with self._record.stage("bind"):
            loaded = load(runner, request, candidate.built.codes)
        if isinstance(loaded, CandidateFailure):
            return loaded
        # Device code alone is run outside the sandbox, and only without library calls.
        may_look = self._request.use_tools or self._request.sanitize
        if may_look and self._site.kind == "cuda" and not prepared.uses_library:
            self._rerun = Rerun(load=request, codes=candidate.built.codes)
        self._describe(candidate, loaded)
        return None

    def _describe(self, candidate: BuiltCandidate, loaded: LoadReply) -> None:
        self._facts = candidate.facts
        self._uses_library = candidate.prepared.uses_library
        self._bound = {bound.workload: bound for bound in loaded.workloads}
        operators = operator_count(self._admission.workloads[0].graph)
        with self._record.stage("behaviour"):
            self._kernel_facts, self._record.measures = describe(
                candidate, loaded.workloads[0], operators
            )

    def _start_draw(self, workload: WorkloadAdmission) -> Future[DrawnInputs]:
        name = workload.workload
        if name not in self._drawn:
            self._drawn[name] = self._site.helpers.submit(self._draw, name)
        return self._drawn[name]

    def _draw(self, workload: str) -> DrawnInputs:
        given = {s.workload: s.seeds for s in self._request.seeds}
        # Else secret and fresh for every evaluation: nothing can be prepared for them.
        seeds = given.get(workload) or tuple(secrets.randbits(31) for _ in range(SEED_COUNT))
        self._record.set_seeds(workload, seeds)
        is_alone = any(w.workload == workload and has_one_seed(w) for w in self._generated)
        draw, descriptors = self._judge.draw(
            self._request.task,
            workload,
            self._admission.tolerance,
            seeds[:1] if is_alone else seeds,
            is_lean=is_alone or workload in self._memory.plan.lean,
        )
        return DrawnInputs(draw=draw, descriptors=descriptors)

    def _verify_all(self, runner: ChildProcess) -> CandidateFailure | None:
        with self._record.stage("correctness"):
            for workload in self._admission.workloads:
                failure = self._verify(runner, workload)
                if failure is not None:
                    return failure
        return None

    def _verify(self, runner: ChildProcess, workload: WorkloadAdmission) -> CandidateFailure | None:
        drawn = self._start_draw(workload).result()
        seconds = self._request.limits.run_seconds
        failure = None
        if self._bound[workload.workload].library_call_count:
            failure = run_without_kernels(runner, self._judge, drawn, seconds=seconds)
            self._record.add_checks((own_kernels_check(workload.workload, failure),))
        count = 1 if has_one_seed(workload) else len(self._record.seeds(workload.workload))
        verdict = failure or run_and_judge(
            runner, self._judge, drawn, seed_count=count, seconds=seconds
        )
        if isinstance(verdict, CandidateFailure):
            self._record.add_checks(damage_checks(verdict, workload.workload))
            return self._explained(self._with_resources(verdict, workload.workload), drawn)
        self._record.set_workload(
            WorkloadResult(
                workload=workload.workload,
                held_out=workload.held_out,
                correctness=verdict.correctness,
                traffic_bound_ns=workload.traffic_bound_ns,
                arithmetic_estimate_ns=workload.arithmetic_estimate_ns,
            )
        )
        self._record.add_checks(verdict.checks)
        if verdict.changed_state:
            changed = ", ".join(verdict.changed_state)
            self._record.set_fact("changed by the reference", changed)
        failure = failure_of(verdict, workload.workload)
        if failure is None:
            self._record.add_findings(verdict.findings)
            return None
        return self._explained(self._with_precision(failure, verdict, workload), drawn)

    def _with_precision(
        self, failure: CandidateFailure, verdict: RunComparison, workload: WorkloadAdmission
    ) -> CandidateFailure:
        """Return wrong numbers by the name of the narrow format that they come from, if one does.

        Errors of 16 bits look like others where they pile up, so whoever computes in such a
        format is audited.
        """
        is_intact = not (verdict.inputs_modified or verdict.stray_writes)
        is_imprecise = any(f.kind is FindingKind.PRECISION for f in failure.findings)
        is_narrow = self._facts is not None and bool(self._facts.formats)
        if not is_intact or not (is_imprecise or is_narrow):
            return failure
        audited = self._judge.audit_precision(self._handle(workload))
        judged = self._judged_precision(audited, workload, is_right=False)
        if not judged.is_refused:
            return failure
        others = () if is_imprecise else failure.findings
        return dataclasses.replace(failure, findings=(*judged.findings, *others))

    def _audit_precision(self, workloads: tuple[WorkloadAdmission, ...]) -> CandidateFailure | None:
        with self._record.stage("precision"):
            for workload in workloads:
                audited = self._judge.audit_precision(self._handle(workload))
                check, failure = judge_elements(audited, workload.workload)
                self._record.add_checks((check,))
                if failure is not None:
                    return failure
                judged = self._judged_precision(audited, workload)
                if judged.is_refused:
                    return CandidateFailure(
                        outcome=EvaluationOutcome.WRONG_RESULT, findings=judged.findings
                    )
                self._record.add_findings(judged.findings)
        return None

    def _try_schedule(self, runner: ChildProcess) -> CandidateFailure | None:
        """Run each workload in reverse order, on the device whose order is always the same."""
        if self._site.kind != "sycl":
            return None
        with self._record.stage("schedule"):
            for workload in self._admission.workloads:
                drawn = self._drawn[workload.workload].result()
                tried = run_in_reverse(
                    runner, self._judge, drawn, seconds=self._request.limits.run_seconds
                )
                self._record.add_checks((tried.check,))
                if tried.failure is not None:
                    return tried.failure
        return None

    def _name_arithmetic(self) -> None:
        audits = [self._record.workload(w.workload).precision for w in self._admission.workloads]
        self._record.arithmetic = arithmetic_text(
            self._facts,
            is_narrow=self._admission.is_narrow,
            effective_bits=min((a.effective_bits for a in audits if a is not None), default=None),
            uses_library=self._uses_library,
        )

    def _handle(self, workload: WorkloadAdmission) -> int:
        return self._drawn[workload.workload].result().draw.draw

    def _judged_precision(
        self, audited: PrecisionReply, workload: WorkloadAdmission, *, is_right: bool = True
    ) -> PrecisionResult:
        """Return what the precision of one workload's outputs means, and keep its figures."""
        judged = self._judge_precision(audited, workload.workload, is_right=is_right)
        if not is_right and not judged.is_refused:
            return judged  # wrong for another reason, of which the figures tell nothing
        result = self._record.workload(workload.workload)
        if result.correctness is not None:
            correctness = dataclasses.replace(result.correctness, precision=audited.least_exact)
            result = dataclasses.replace(result, correctness=correctness)
            self._record.set_workload(result)
        self._record.add_checks((judged.check,))
        return judged

    def _judge_precision(
        self, audited: PrecisionReply, workload: str, inputs: str = "", *, is_right: bool = True
    ) -> PrecisionResult:
        return judge_precision(
            audited,
            task=self._request.task,
            admission=self._admission,
            workload=workload,
            facts=self._facts or ObjectFacts(),
            is_right=is_right,
            inputs=inputs,
        )

    def _explained(self, failure: CandidateFailure, drawn: DrawnInputs) -> CandidateFailure:
        """Return a failure with what a tool says of it."""
        if self._rerun is None:
            return failure
        with self._record.stage("tools"):
            found = explain_failure(self._rerun, drawn.draw, failure)
        return dataclasses.replace(failure, findings=(*failure.findings, *found))

    def _with_resources(self, failure: CandidateFailure, workload: str) -> CandidateFailure:
        """Return a refused launch with what it lacked, where the object code tells."""
        report = self._record.compile
        if failure.outcome is not EvaluationOutcome.LAUNCH_ERROR or report is None:
            return failure
        launches = _launch_facts(self._bound[workload])
        found = diagnosis.launch_findings(report.kernels, launches, self._site.spec)
        return dataclasses.replace(failure, findings=(*failure.findings, *found))

    def _take_times(self, runner: ChildProcess) -> CandidateFailure | None:
        meter = self._site.load_meter()
        timed = [w for w in self._admission.workloads if not w.held_out]
        for index, workload in enumerate(timed):
            timer = self._timer(runner, workload, index)
            with self._record.stage("timing"):
                result = timer.time()
            if isinstance(result, CandidateFailure):
                return result
            if result.failure is None:
                name, judged = workload.workload, self._judge_precision
                failure = judge_timed_calls(result.audits, name, judged, self._record)
                failure = failure or self._ranges.judge_guests(name, result.guests, judged)
                result = dataclasses.replace(result, failure=failure)
            if result.failure is None:
                with self._record.stage("data_flow"):
                    result = timer.probed(result)
            self._keep_times(workload, result)
            if result.failure is not None:
                return result.failure
            self._check_arithmetic(workload)
        with self._record.stage("timing"):
            self._settle_baselines(timed, meter)
        return None

    def _check_arithmetic(self, workload: WorkloadAdmission) -> None:
        check, findings = arithmetic_check(
            workload,
            self._record.workload(workload.workload),
            language=self._site.spec.language,
            peaks=self._peaks,
            facts=None if self._uses_library else self._facts,
            redundancies=self._admission.redundancies,
        )
        self._record.add_checks((check,))
        self._record.add_findings(findings)

    def _settle_baselines(self, timed: list[WorkloadAdmission], meter: LoadMeter) -> None:
        """See to it that the verdict compares with baselines that are true now.

        Those of a promotion were timed beside the candidate; those of the admission are looked at
        again after a while, and whenever the host is loaded.
        """
        task, site = self._request.task, self._site
        load = meter.load()
        is_loaded = load is not None and load.is_loaded
        is_due = site.baselines.is_due(task.digest, is_loaded=is_loaded)
        is_fresh = self._request.fresh_baselines
        if load is not None and (finding := load.finding()):
            self._record.add_findings((finding,))
        if not is_due and not is_fresh:
            return
        baselines: dict[str, tuple[Baseline, ...]] = {}
        for workload in timed:
            checked = self._checked_baselines(workload)
            if checked.drift is not None:
                baselines[workload.workload] = checked.baselines
                self._record.add_findings((checked.drift,))
            if not is_fresh:
                result = self._record.workload(workload.workload)
                result = dataclasses.replace(result, baselines=checked.baselines)
                self._record.set_workload(result)
        load = meter.load() or load
        if baselines:
            admission = site.remembered_admission(task) or self._admission
            site.remember_admission(task, with_baselines(admission, baselines), load)
        else:
            site.saw_baselines(task, load)

    def _checked_baselines(self, workload: WorkloadAdmission) -> BaselineComparison:
        name = workload.workload
        if self._request.fresh_baselines:
            return compared(workload.baselines, self._record.workload(name).baselines)
        draw = self._drawn[name].result().draw
        return check_baselines(
            lambda plan, names: self._judge.time_baselines(draw.draw, plan, names),
            workload.baselines,
            seconds=self._site.settings.baseline_seconds,
            flush_bytes=2 * self._site.spec.cache_bytes,
        )

    def _timer(
        self, runner: ChildProcess, workload: WorkloadAdmission, index: int
    ) -> WorkloadTimer:
        request, settings = self._request, self._site.settings
        incumbents, bound = request.stop_above_ns, self._bound[workload.workload]
        return WorkloadTimer(
            runner,
            self._judge,
            draw=self._drawn[workload.workload].result().draw,
            admission=workload,
            guests=self._ranges.guests.get(workload.workload),
            settings=TimingSettings(
                device=self._site.spec,
                peaks=self._peaks,
                seconds=request.limits.timing_seconds,
                warm_seconds=settings.warm_seconds,
                run_seconds=request.limits.run_seconds,
                pool_limit_bytes=pool_limit(workload.workload, self._memory.plan, self._site),
                stop_above_ns=incumbents[index] if index < len(incumbents) else 0.0,
                fresh_baselines=request.fresh_baselines,
                kernels=bound.kernels,
                divides_time=len(bound.kernels) + bound.library_call_count > 1,
                is_prepared=bound.prepared_bytes > 0,
            ),
        )

    def _keep_times(self, workload: WorkloadAdmission, timed: WorkloadTimes) -> None:
        bound = self._bound[workload.workload]
        result = dataclasses.replace(
            self._record.workload(workload.workload),
            timing=timed.timing,
            warm_timing=timed.warm_timing,
            baselines=timed.baselines,
            own_share=timed.own_share,
            prepare_ns=timed.prepare_ns,
            prepare_limit_ns=(
                None
                if timed.prepare_ns is None
                else layout_limit_ns(bound, self._site.spec.language, self._peaks)
            ),
            kernel_times=timed.kernel_times,
        )
        self._record.set_workload(result)
        self._record.add_findings(prepare_findings(result, bound, self._peaks))
        self._record.add_checks(timed.checks)
        self._record.add_findings(timed.findings)
        self._pool_bytes += timed.pool.pool_bytes
        self._record.add_fact(
            f"pool of {workload.workload}",
            f"{timed.pool.set_count} input sets, {timed.pool.pool_bytes} bytes; "
            f"{timed.flush_bytes} bytes read between samples to empty the caches",
        )

    def _profile(self) -> None:
        """Let the profiler look at a candidate that is measured afresh, which promises something.

        Holds the device alone: the tool's figures would suffer from others, and theirs from it.
        """
        if self._rerun is None or not self._request.fresh_baselines:
            return
        first = next(w.workload for w in self._admission.workloads if not w.held_out)
        draw = self._drawn[first].result().draw
        with self._record.stage("tools"):
            self._record.add_findings(profile(self._rerun, draw, self._bound[first].kernels))

    def _sanitize(self) -> CandidateFailure | None:
        """Look for undefined behaviour that happens to be right, on the smallest workload."""
        if not self._request.sanitize:
            return None
        smallest = min(self._admission.workloads, key=lambda w: w.minimal_bytes)
        draw = self._drawn[smallest.workload].result().draw
        with self._record.stage("tools"):
            found = sanitized(self._rerun, draw)
        self._record.add_checks(found.checks)
        return found.failure

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
            launches=_launch_facts(bound),
            resources=self._record.compile.kernels if self._record.compile else (),
        )
        self._record.add_findings(findings)

    def _add_evidence(self) -> None:
        for fact in verdict_facts(self._site, self._request, self._judge.facts()):
            self._record.add_fact(fact.name, fact.value)

    def _release_draws(self) -> None:
        drawn = self._all_drawn()
        self._site.helpers.submit(release_all, self._judge, drawn, self._runner, self._memory)

    def _all_drawn(self) -> "tuple[Future[DrawnInputs], ...]":
        return (*self._drawn.values(), *self._ranges.drawn)


def _launch_facts(bound: BoundWorkload) -> LaunchFacts:
    return LaunchFacts(
        launch_count=bound.launch_count,
        group_count=bound.group_count,
        group_size=bound.group_size,
        kernel=bound.main_kernel,
        shared_bytes=bound.main_shared_bytes,
    )
