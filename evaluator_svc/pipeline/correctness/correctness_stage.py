"""The stages correctness, precision and schedule: is the candidate right on every workload?

`compare_runs.py` runs and judges one workload, and `precision.py` assesses the audit of its
precision. Unusual values have a stage of their own (`value_ranges.py`).
"""

import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Final

from evaluator_svc import diagnosis
from evaluator_svc.messages.comparison import RunComparison
from evaluator_svc.messages.judge import PrecisionReply
from evaluator_svc.messages.locked import CandidateFailure
from evaluator_svc.pipeline.build.loaded_candidate import RunnableCandidate
from evaluator_svc.pipeline.correctness.arithmetic_label import arithmetic_text
from evaluator_svc.pipeline.correctness.compare_runs import run_and_judge
from evaluator_svc.pipeline.correctness.crash_place import with_launches
from evaluator_svc.pipeline.correctness.decoy import own_kernels_check, run_without_kernels
from evaluator_svc.pipeline.correctness.element_errors import assess_elements
from evaluator_svc.pipeline.correctness.generated_sizes import (
    GeneratedTrials,
    has_one_seed,
    is_audited,
)
from evaluator_svc.pipeline.correctness.other_orders import run_in_reverse, run_one_by_one
from evaluator_svc.pipeline.correctness.precision import PrecisionResult, assess_precision
from evaluator_svc.pipeline.draws import EvaluationDraws
from evaluator_svc.pipeline.evaluation_context import EvaluationContext
from evaluator_svc.pipeline.runner_calls import DrawnInputs, damage_checks, failure_of, load
from evaluator_svc.pipeline.tools import explain_failure
from evaluator_svc.policy import ObjectFacts
from kernel_foundry.domain.admission import WorkloadAdmission
from kernel_foundry.domain.evaluation import EvaluationOutcome, WorkloadResult
from kernel_foundry.domain.finding import FindingKind

_LOAD_SHARE: Final = 4.0
"""Times what loading took, that making machine code once more may take at a busy moment."""


class CorrectnessStage:
    """Compares a loaded candidate with the reference; adds its findings to the draft."""

    def __init__(
        self, context: EvaluationContext, draws: EvaluationDraws, candidate: RunnableCandidate
    ) -> None:
        self._context = context
        self._draft = context.draft
        self._draws = draws
        self._candidate = candidate
        self._call_seconds: dict[str, float] = {}
        """Time of a call of each verified workload, and of its comparison."""
        self._reverse_seconds: dict[str, float] = {}
        """Time of each workload's run in reverse order, and of its comparison."""

    def verify(self, workloads: Sequence[WorkloadAdmission]) -> CandidateFailure | None:
        """Run each workload and compare every element; return the first failure."""
        with self._draft.stage("correctness"):
            for workload in workloads:
                failure = self._verify(workload)
                if failure is not None:
                    return failure
        return None

    def audit_precision(self, workloads: Sequence[WorkloadAdmission]) -> CandidateFailure | None:
        """Audit how exact the outputs of verified workloads are; return the first failure."""
        with self._draft.stage("precision"):
            for workload in workloads:
                audited = self._context.judge.audit_precision(self._draws.of(workload).draw.draw)
                check, failure = assess_elements(audited, workload.workload)
                self._draft.add_checks((check,))
                if failure is not None:
                    return failure
                judged = self._keep_precision(audited, workload)
                if judged.is_refused:
                    return CandidateFailure(
                        outcome=EvaluationOutcome.WRONG_RESULT, findings=judged.findings
                    )
                self._draft.add_findings(judged.findings)
        return None

    def try_schedule(self, workloads: Sequence[WorkloadAdmission]) -> CandidateFailure | None:
        """Run workloads in reverse order, on the device whose order is always the same."""
        context = self._context
        if context.site.kind != "sycl":
            return None
        # Machine code of the rewritten object is made within the first run.
        made = _LOAD_SHARE * self._candidate.load_seconds
        seconds = context.request.limits.run_seconds + made
        with self._draft.stage("schedule"):
            for workload in workloads:
                drawn = self._draws.of(workload)
                started = time.monotonic()
                tried = run_in_reverse(
                    self._candidate.runner, context.judge, drawn, seconds=seconds
                )
                self._reverse_seconds[workload.workload] = time.monotonic() - started
                self._draft.add_checks((tried.check,))
                if tried.failure is not None:
                    return tried.failure
        return None

    def try_one_by_one(self, workloads: Sequence[WorkloadAdmission]) -> CandidateFailure | None:
        """Run workloads with one work-group at a time, if work-groups may wait for each other."""
        context, again = self._context, self._candidate.one_by_one
        if again is None:
            return None
        uses_library = self._candidate.uses_library
        with (
            self._draft.stage("schedule"),
            context.site.one_thread_runner(with_library=uses_library) as runner,
        ):
            loaded = load(runner, again.load, again.codes)
            if isinstance(loaded, CandidateFailure):
                return loaded
            for workload in workloads:
                drawn = self._draws.of(workload)
                # One thread has the work of all, for several runs in place of one.
                work = self._reverse_seconds.get(workload.workload, 0.0) * drawn.draw.slot_count
                seconds = (
                    context.request.limits.run_seconds + context.site.settings.thread_count * work
                )
                tried = run_one_by_one(runner, context.judge, drawn, seconds=seconds)
                self._draft.add_checks((tried.check,))
                if tried.failure is not None:
                    return tried.failure
        return None

    def try_generated(
        self,
        trials: GeneratedTrials,
        try_ranges: Callable[[WorkloadAdmission], CandidateFailure | None],
    ) -> CandidateFailure | None:
        """Verify sizes that the task does not name; return the first failure.

        Args:
            trials: The workloads.
            try_ranges: Tries a verified workload on unusual values.
        """
        return trials.run(
            lambda workload: (
                self.verify((workload,))
                or (self.audit_precision((workload,)) if is_audited(workload) else None)
                or try_ranges(workload)
            )
        )

    def limit_seconds(self, workload: str, call_count: int) -> float:
        """Return the time limit of so many calls of a verified workload.

        A slow kernel, or one on a busy machine, has the time that its calls took before; what has
        no end on other values has a run's limit in addition.
        """
        seconds = self._context.request.limits.run_seconds
        return seconds + call_count * self._call_seconds[workload]

    def name_arithmetic(self) -> None:
        """Record what the candidate computes in; every workload has been verified."""
        admission = self._context.admission
        audits = [self._draft.workload(w.workload).precision for w in admission.workloads]
        self._draft.arithmetic = arithmetic_text(
            self._candidate.facts,
            is_narrow=admission.is_narrow,
            effective_bits=min((a.effective_bits for a in audits if a is not None), default=None),
            uses_library=self._candidate.uses_library,
        )

    def assess_precision(
        self, audited: PrecisionReply, workload: str, inputs: str = "", *, is_right: bool = True
    ) -> PrecisionResult:
        """Return the result of an audit for this candidate; as `precision.assess_precision`."""
        return assess_precision(
            audited,
            task=self._context.request.task,
            admission=self._context.admission,
            workload=workload,
            facts=self._candidate.facts or ObjectFacts(),
            is_right=is_right,
            inputs=inputs,
        )

    def _verify(self, workload: WorkloadAdmission) -> CandidateFailure | None:
        drawn = self._draws.of(workload)
        runner, judge = self._candidate.runner, self._context.judge
        seconds = self._context.request.limits.run_seconds
        failure = None
        if self._candidate.bound[workload.workload].library_call_count:
            failure = run_without_kernels(runner, judge, drawn, seconds=seconds)
            self._draft.add_checks((own_kernels_check(workload.workload, failure),))
        count = 1 if has_one_seed(workload) else len(self._draft.seeds(workload.workload))
        started = time.monotonic()
        verdict = failure or run_and_judge(runner, judge, drawn, seed_count=count, seconds=seconds)
        self._call_seconds[workload.workload] = (time.monotonic() - started) / count
        if isinstance(verdict, CandidateFailure):
            self._draft.add_checks(damage_checks(verdict, workload.workload))
            if failure is None:  # kernels ran
                verdict = with_launches(
                    verdict,
                    self._candidate.bound[workload.workload].kernels,
                    drawn.draw.slots,
                    shows_sizes=not workload.held_out,
                )
            return self._explained(self._with_resources(verdict, workload.workload), drawn)
        self._draft.set_workload(
            WorkloadResult(
                workload=workload.workload,
                held_out=workload.held_out,
                weight=self._context.request.task.weight_of(workload.workload),
                correctness=verdict.correctness,
                traffic_bound_ns=workload.traffic_bound_ns,
                arithmetic_estimate_ns=workload.arithmetic_estimate_ns,
            )
        )
        self._draft.add_checks(verdict.checks)
        if verdict.changed_state:
            changed = ", ".join(verdict.changed_state)
            self._draft.set_fact("changed by the reference", changed)
        failure = failure_of(verdict, workload.workload)
        if failure is None:
            self._draft.add_findings(verdict.findings)
            return None
        return self._explained(self._with_precision(failure, verdict, workload), drawn)

    def _with_precision(
        self, failure: CandidateFailure, verdict: RunComparison, workload: WorkloadAdmission
    ) -> CandidateFailure:
        """Return wrong numbers by the name of the narrow format that they come from, if one does.

        Errors of 16 bits look like others where they pile up, so whoever computes in such a
        format is audited.
        """
        facts = self._candidate.facts
        is_intact = not (verdict.inputs_modified or verdict.stray_writes)
        is_imprecise = any(f.kind is FindingKind.PRECISION for f in failure.findings)
        is_narrow = facts is not None and bool(facts.formats)
        if not is_intact or not (is_imprecise or is_narrow):
            return failure
        audited = self._context.judge.audit_precision(self._draws.of(workload).draw.draw)
        judged = self._keep_precision(audited, workload, is_right=False)
        if not judged.is_refused:
            return failure
        others = () if is_imprecise else failure.findings
        return dataclasses.replace(failure, findings=(*judged.findings, *others))

    def _keep_precision(
        self, audited: PrecisionReply, workload: WorkloadAdmission, *, is_right: bool = True
    ) -> PrecisionResult:
        """Return the result of one workload's precision audit, and keep its figures."""
        judged = self.assess_precision(audited, workload.workload, is_right=is_right)
        if not is_right and not judged.is_refused:
            return judged  # wrong for another reason, of which the figures tell nothing
        result = self._draft.workload(workload.workload)
        if result.correctness is not None:
            correctness = dataclasses.replace(result.correctness, precision=audited.least_exact)
            result = dataclasses.replace(result, correctness=correctness)
            self._draft.set_workload(result)
        self._draft.add_checks((judged.check,))
        return judged

    def _explained(self, failure: CandidateFailure, drawn: DrawnInputs) -> CandidateFailure:
        rerun = self._candidate.rerun
        if rerun is None:
            return failure
        with self._draft.stage("tools"):
            found = explain_failure(rerun, drawn.draw, failure)
        return dataclasses.replace(failure, findings=(*failure.findings, *found))

    def _with_resources(self, failure: CandidateFailure, workload: str) -> CandidateFailure:
        """Return a refused launch with the resources it lacked, if the object code has them."""
        report = self._draft.compile
        if failure.outcome is not EvaluationOutcome.LAUNCH_ERROR or report is None:
            return failure
        launches = self._candidate.launch_facts(workload)
        found = diagnosis.launch_findings(report.kernels, launches, self._context.site.spec)
        return dataclasses.replace(failure, findings=(*failure.findings, *found))
