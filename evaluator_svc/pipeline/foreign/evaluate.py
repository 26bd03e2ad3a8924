"""The stages of a verdict on a foreign kernel, in order; the first failure ends it.

load → correctness, precision, every element → value ranges → timing, with data flow → generated
sizes → what it changed of its process. They are those of our own candidates without what
needs a plan, object code or an order of work-groups.
"""

import dataclasses
from contextlib import ExitStack

from evaluator_svc.behaviour import KernelFacts
from evaluator_svc.devices.site import DeviceSite
from evaluator_svc.messages.foreign import (
    ForeignBindRequest,
    ForeignChanges,
    ForeignLoaded,
    ForeignLoadRequest,
    ForeignState,
    ForeignStateRequest,
    ForeignWorkload,
)
from evaluator_svc.messages.locked import CandidateFailure, DoneReply
from evaluator_svc.messages.measurement import MeasurementSettings
from evaluator_svc.messages.runner import BoundWorkload
from evaluator_svc.pipeline.build.loaded_candidate import RunnableCandidate
from evaluator_svc.pipeline.correctness.changed_inputs import probe_data_flow
from evaluator_svc.pipeline.correctness.correctness_stage import CorrectnessStage
from evaluator_svc.pipeline.evaluation_draft import EvaluationDraft, fastest_baselines_ns
from evaluator_svc.pipeline.evaluation_parts import EvaluationParts
from evaluator_svc.pipeline.foreign.empty_kernel import EmptyKernel, empty_kernel
from evaluator_svc.pipeline.foreign.not_excluded import not_excluded
from evaluator_svc.pipeline.foreign.timing import ForeignTimer, ForeignTimings
from evaluator_svc.pipeline.memory.evaluation_memory import MemoryWish
from evaluator_svc.pipeline.timing.baseline_refresh import refresh_baselines
from evaluator_svc.pipeline.timing.timed_calls import assess_timed_calls
from evaluator_svc.pipeline.timing.workload_timing import least_seconds
from evaluator_svc.processes.ask_candidate import ask_candidate
from evaluator_svc.processes.process import ChildProcess
from kernel_foundry.domain.admission import Admission, TensorRole, WorkloadAdmission
from kernel_foundry.domain.check import Check, CheckKind, CheckResult, Trust
from kernel_foundry.domain.device import Peaks
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.finding import Finding, FindingKind, Severity
from kernel_foundry.domain.foreign import ForeignRequest

_STATE = (TensorRole.PARAMETER, TensorRole.BUFFER)


class ForeignEvaluation:
    """One foreign kernel on its way through the stages; used once.

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
        request: ForeignRequest,
        admission: Admission,
        peaks: Peaks,
        wish: MemoryWish,
    ) -> None:
        self._site = site
        self._request = request
        self._draft = EvaluationDraft(
            task=request.task.digest,
            candidate=request.source.digest,
            device=site.spec.id,
            baselines_ns=fastest_baselines_ns(admission),
            seeds_given=bool(request.seeds),
            trust=Trust.FOREIGN,
        )
        self._parts = EvaluationParts(site, request, admission, peaks, wish, self._draft)
        self._context, self._draws = self._parts.context, self._parts.draws
        self._workloads = self._parts.workloads
        self._timed = tuple(w for w in self._workloads if not w.held_out)
        self._all = (*self._workloads, *self._parts.generated)
        self._process: ChildProcess | None = None

    def evaluate(self) -> Evaluation:
        """Return the verdict, unsigned; raises only for failures of our own.

        Raises:
            DeviceMemoryError: the device has too little memory, perhaps beside the candidate.
            TaskInvalidError: the reference is called with what no other process can be given.
        """
        try:
            with ExitStack() as held:
                failure = self._first_failure(held)
            verdict = self._draft.passed() if failure is None else self._draft.failed(failure)
            return dataclasses.replace(verdict, attestation=None)
        finally:
            self._parts.release(self._process)

    def _first_failure(self, held: ExitStack) -> CandidateFailure | None:
        self._parts.memory.take()
        with self._site.lock.shared():
            self._draws.start(self._workloads[0])
            # Before the candidate, which may take memory that this one needs.
            empty = held.enter_context(empty_kernel(self._site))
            process = self._process = held.enter_context(self._site.foreign_process())
            self._parts.add_facts()
            failure = self._load(process)
            if failure is not None:
                return failure
            candidate = self._loaded(process)
            correctness = CorrectnessStage(self._context, self._draws, candidate)
            failure = self._find_wrong(correctness, process)
        if failure is None:
            with self._site.lock.exclusive():
                failure = self._time_all(correctness, process, empty)
        if failure is not None:
            return failure
        with self._site.lock.shared():
            failure = self._parts.try_elsewhere(correctness, process, candidate.bound)
            return failure or self._look_at_process(process)

    def _load(self, process: ChildProcess) -> CandidateFailure | None:
        with self._draft.stage("build"):
            loaded = ask_candidate(
                process,
                ForeignLoadRequest(source=self._request.source),
                ForeignLoaded,
                seconds=self._request.limits.build_seconds,
                doing="importing or building the sources",
            )
        if isinstance(loaded, CandidateFailure):
            return loaded
        with self._draft.stage("bind"):
            for workload in self._all:
                # The judge has to hold the workload; its inputs are drawn for the runs anyway.
                drawn = self._draws.of(workload)
                form = self._context.judge.call_form(drawn.draw.draw)
                bound = ForeignWorkload(
                    workload=workload.workload,
                    form=form,
                    state=tuple(
                        ForeignState(
                            slot=tensor.name,
                            path=tensor.path,
                            is_parameter=tensor.role is TensorRole.PARAMETER,
                        )
                        for tensor in workload.tensors
                        if tensor.role in _STATE
                    ),
                )
                answer = ask_candidate(
                    process,
                    ForeignBindRequest(workload=bound),
                    DoneReply,
                    seconds=self._request.limits.run_seconds,
                    doing="noting how it is called",
                )
                if isinstance(answer, CandidateFailure):
                    return answer
        return None

    def _loaded(self, process: ChildProcess) -> RunnableCandidate:
        bound = {
            w.workload: BoundWorkload(
                workload=w.workload,
                launch_count=0,
                scratch_count=0,
                scratch_bytes=0,
                group_count=0,
                group_size=0,
                kernels=(),
            )
            for w in self._all
        }
        return RunnableCandidate(
            runner=process,
            bound=bound,
            kernel_facts=KernelFacts(),
            facts=None,
            uses_library=False,
            rerun=None,
            load_seconds=0.0,
            one_by_one=None,
        )

    def _find_wrong(
        self, correctness: CorrectnessStage, process: ChildProcess
    ) -> CandidateFailure | None:
        failure = correctness.verify(self._workloads)
        if failure is None:
            note = "plain tensors in memory of their own, complete when a call returns"
            self._draft.add_checks(
                (Check(kind=CheckKind.OUTPUT_MEMORY, result=CheckResult.PASSED, note=note),)
            )
        return (
            failure
            or correctness.audit_precision(self._workloads)
            or self._parts.ranges.run(process, correctness, binding=True)
            # Before times are taken: what is replaced may be meant for them.
            or self._look_at_process(process)
        )

    def _time_all(
        self, correctness: CorrectnessStage, process: ChildProcess, empty: EmptyKernel
    ) -> CandidateFailure | None:
        meter = self._site.load_meter()
        for workload in self._timed:
            failure = self._time(workload, correctness, process, empty)
            if failure is not None:
                return failure
        draws = [self._draws.of(workload).draw for workload in self._timed]
        self._draft.add_checks(not_excluded(draws, on_gpu=self._site.kind == "cuda"))
        with self._draft.stage("timing"):
            refresh_baselines(self._context, self._draws, self._timed, meter)
        return None

    def _time(
        self,
        workload: WorkloadAdmission,
        correctness: CorrectnessStage,
        process: ChildProcess,
        empty: EmptyKernel,
    ) -> CandidateFailure | None:
        name, limits = workload.workload, self._request.limits
        drawn = self._draws.of(workload)
        draw, judge = drawn.draw, self._context.judge
        settings = MeasurementSettings(
            seconds=limits.timing_seconds,
            flush_bytes=self._site.spec.flush_bytes,
            min_seconds=least_seconds(self._site.spec),
        )
        empty.open(drawn, judge.call_form(draw.draw))
        timer = ForeignTimer(
            process,
            judge,
            draw=draw,
            empty=empty,
            admission=workload,
            device=self._site.spec,
            peaks=self._context.peaks,
            settings=settings,
            run_seconds=limits.run_seconds,
            may_wait_for_threads=self._site.shares_cores and self._site.settings.thread_count > 1,
        )
        with self._draft.stage("timing"):
            timed = timer.time()
            if isinstance(timed, CandidateFailure):
                return timed
            self._keep(workload, timed, settings)
        audits = [v.audited for v in timed.verdicts if v.audited is not None]
        failure = timed.failure or assess_timed_calls(
            audits, name, correctness.assess_precision, self._draft
        )
        if failure is not None:
            return failure
        with self._draft.stage("data_flow"):
            found = probe_data_flow(
                process,
                judge,
                draw,
                seconds=limits.run_seconds,
                is_prepared=True,  # what follows from parameters may be kept
            )
        self._draft.add_checks(found.checks)
        return found.failure

    def _keep(
        self, workload: WorkloadAdmission, timed: ForeignTimings, settings: MeasurementSettings
    ) -> None:
        baselines = workload.baselines
        if self._request.fresh_baselines:
            draw = self._draws.of(workload).draw.draw
            names = tuple(b.name for b in baselines)
            baselines = self._context.judge.time_baselines(draw, settings, names)
        result = dataclasses.replace(
            self._draft.workload(workload.workload),
            timing=timed.timing,
            warm_timing=timed.warm_timing,
            baselines=baselines,
        )
        self._draft.set_workload(result)
        self._draft.add_checks(timed.checks)
        self._draft.add_findings(timed.findings)

    def _look_at_process(self, process: ChildProcess) -> CandidateFailure | None:
        """Refuse a candidate that has replaced what a harness might use, or left a thread."""
        if not process.is_running:
            return None  # a size was declined, which ends it; what it changed was looked at before
        changes = ask_candidate(
            process,
            ForeignStateRequest(),
            ForeignChanges,
            seconds=self._request.limits.run_seconds,
            doing="telling what has changed of it",
        )
        if isinstance(changes, CandidateFailure):
            return changes
        said = [f"replaced {name}" for name in changes.replaced]
        said += [f"left thread {name} running" for name in changes.threads]
        check = Check(
            kind=CheckKind.PROCESS_STATE,
            result=CheckResult.FAILED if said else CheckResult.PASSED,
            note="; ".join(said),
        )
        self._draft.add_checks((check,))
        if not said:
            return None
        finding = Finding(
            kind=FindingKind.POLICY,
            severity=Severity.ERROR,
            message=f"it has {'; '.join(said)}",
            hint="leave functions and settings of Python and torch as they are",
        )
        return CandidateFailure(outcome=EvaluationOutcome.REJECTED, findings=(finding,))
