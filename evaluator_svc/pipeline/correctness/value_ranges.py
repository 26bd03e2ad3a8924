"""Stage value ranges: the candidate on inputs of unusual values.

On the smallest workload, on timed ones and, behind these, on one that is generated.

Where the reference is well defined it has to be right; elsewhere a difference is reported, and is
no reason to refuse. On some of them its precision is audited as well.
"""

from collections.abc import Container
from concurrent.futures import Future
from typing import Final

from evaluator_svc.messages.comparison import RangeVerdict
from evaluator_svc.messages.judge import PrecisionReply
from evaluator_svc.messages.locked import CandidateFailure, DoneReply
from evaluator_svc.messages.runner import RunRequest
from evaluator_svc.pipeline.correctness.correctness_stage import CorrectnessStage
from evaluator_svc.pipeline.correctness.guest_calls import Guests
from evaluator_svc.pipeline.correctness.precision import AssessPrecision
from evaluator_svc.pipeline.correctness.range_choice import RangeChoice, of_mixed_rows
from evaluator_svc.pipeline.evaluation_context import EvaluationContext
from evaluator_svc.pipeline.memory.evaluation_memory import EvaluationMemory
from evaluator_svc.pipeline.memory.memory_plan import sizes_of
from evaluator_svc.pipeline.runner_calls import DrawnInputs
from evaluator_svc.processes.ask_candidate import ask_candidate
from evaluator_svc.processes.process import ChildProcess
from evaluator_svc.sizes.memory_needs import has_ranges_size
from kernel_foundry.domain.admission import Admission, ValueRange, WorkloadAdmission
from kernel_foundry.domain.check import Check, CheckKind, CheckResult
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import Finding, FindingKind, Severity

_GUESTS: Final = "unusual values among timed calls"
_NO_MEMORY: Final = "there is no memory to try it on unusual values"
_UNDEFINED: Final = "the reference is defined well enough on no unusual values to hold it to them"


class RangeTrials:
    """One candidate's trials on unusual values.

    Args:
        context: The evaluation.
        admission: Says which ranges there are, and which of them are binding; with generated
            workloads.
        memory: Says for which workloads there is too little memory.
    """

    def __init__(
        self, context: EvaluationContext, admission: Admission, memory: EvaluationMemory
    ) -> None:
        self._context = context
        self._draft = context.draft
        self._judge = context.judge
        self._admission = admission
        self._memory = memory
        self._choice = RangeChoice(admission, context.site)
        self.drawn: list[Future[DrawnInputs]] = []
        """To be released once the runner is dead."""
        self.guests: dict[str, Guests] = {}
        """By workload: what calls among the timed ones may have as inputs."""
        self._is_tried_elsewhere = False
        """Whether a generated workload was tried."""

    def spare(self, bound: Container[str]) -> None:
        """Let the smallest workload do with fewer, where one of `bound` is tried on all."""
        self._choice = RangeChoice(self._admission, self._context.site, bound)

    def run(
        self, runner: ChildProcess, correctness: CorrectnessStage, *, binding: bool
    ) -> CandidateFailure | None:
        """Run the candidate once on each range that is binding, or on each of the others.

        Others come last: the runner may be lost to them.
        """
        left_out = self._memory.plan.without_ranges
        for workload in self._admission.without_generated.workloads:
            name = workload.workload
            ranges = self._chosen(workload, binding=binding)
            if name in left_out:
                self._draft.add_checks((_skipped(name, _NO_MEMORY),) if binding else ())
            elif not ranges and binding and workload.value_ranges:
                self._draft.add_checks((_skipped(name, _UNDEFINED),))
            elif ranges and (binding or name == self._choice.least):
                mixed = self._choice.mixed(workload) if binding else ()
                with self._draft.stage("value_ranges"):
                    failure = self._try(runner, workload, ranges, mixed, correctness)
                if failure is not None:
                    return failure if binding else self._report(failure, name)
        return None

    def run_generated(
        self,
        runner: ChildProcess,
        correctness: CorrectnessStage,
        workload: WorkloadAdmission,
    ) -> CandidateFailure | None:
        """Run the candidate on the binding ranges of a generated workload that it takes.

        On all of the first that has any: what is wrong on unusual values where a size is odd shows
        there. On the next, which is larger than what is timed, in blocks of rows of one draw. The
        workload was verified before.
        """
        if workload.workload in self._memory.plan.without_ranges:
            return None
        ranges: tuple[ValueRange, ...] = ()
        if self._is_tried_elsewhere:
            mixed = self._choice.by_row(workload)
        else:
            ranges, mixed = self._chosen(workload, binding=True), self._choice.mixed(workload)
        if not ranges and not mixed:
            return None
        self._is_tried_elsewhere = True
        with self._draft.stage("value_ranges"):
            return self._try(runner, workload, ranges, mixed, correctness)

    def _chosen(self, workload: WorkloadAdmission, *, binding: bool) -> tuple[ValueRange, ...]:
        """Return the distributions to try on a workload, and report those that are left out."""
        if not workload.value_ranges:
            return ()
        chosen = self._choice.chosen(workload, self._draft.seeds(workload.workload)[0])
        if binding and 0 < len(chosen) < len(workload.value_ranges):
            names = ", ".join(r.distribution.value for r in chosen)
            value = f"{names}: {len(chosen)} of {len(workload.value_ranges)}, at random"
            self._draft.add_fact(f"unusual values tried on {workload.workload}", value)
        return tuple(r for r in chosen if r.is_binding is binding)

    def _try(
        self,
        runner: ChildProcess,
        workload: WorkloadAdmission,
        ranges: tuple[ValueRange, ...],
        mixed: tuple[ValueRange, ...],
        correctness: CorrectnessStage,
    ) -> CandidateFailure | None:
        name = workload.workload
        is_lean = not has_ranges_size(sizes_of(workload))
        if mixed:
            ranges = (*ranges, of_mixed_rows(mixed))
        future = self._context.site.helpers.submit(self._draw, name, ranges, mixed, is_lean=is_lean)
        self.drawn.append(future)
        drawn = future.result()
        # Of a lean draw the last one is loaded, and the others follow.
        for index in reversed(range(len(ranges))) if drawn.draw.is_lean else (None,):
            if index is not None and index < len(ranges) - 1:
                self._judge.load_seed(drawn.draw.draw, index)
            looked_at = ranges if index is None else (ranges[index],)
            answer = ask_candidate(
                runner,
                RunRequest(draw=drawn.draw, once=True),
                DoneReply,
                seconds=correctness.limit_seconds(name, len(looked_at)),
                doing=f"running the kernels on unusual values, workload {name}",
                descriptors=drawn.descriptors,
            )
            if isinstance(answer, CandidateFailure):
                return answer
            verdicts = self._judge.verify_ranges(drawn.draw.draw, ranges)
            names = tuple(value_range.distribution.value for value_range in looked_at)
            failure = self._judged(name, names, verdicts, correctness.assess_precision)
            if failure is not None:
                return failure
        if ranges[0].is_binding:
            self.guests[name] = Guests(drawn=drawn, ranges=ranges)
        return None

    def assess_guests(
        self, workload: str, verdicts: tuple[RangeVerdict, ...], assess_precision: AssessPrecision
    ) -> CandidateFailure | None:
        """Record what calls among the timed ones came to; return the first failure."""
        names = (_GUESTS,) * len(verdicts)
        return self._judged(workload, names, verdicts, assess_precision)

    def _judged(
        self,
        workload: str,
        names: tuple[str, ...],
        verdicts: tuple[RangeVerdict, ...],
        assess_precision: AssessPrecision,
    ) -> CandidateFailure | None:
        self._draft.add_checks(tuple(verdict.check for verdict in verdicts))
        failure = _failure(verdicts)
        if failure is not None:
            return failure
        self._draft.add_findings(tuple(f for v in verdicts for f in v.findings))
        for name, verdict in zip(names, verdicts, strict=True):
            audited = PrecisionReply(audit=verdict.audit, wide=verdict.wide)
            if audited.least_exact is None:
                continue
            judged = assess_precision(audited, workload, name)
            self._draft.add_checks((judged.check,))
            if judged.is_refused:
                return CandidateFailure(
                    outcome=EvaluationOutcome.WRONG_RESULT, findings=judged.findings
                )
            self._draft.add_findings(judged.findings)
            self._draft.keep_precision(workload, audited.least_exact)
        return None

    def _draw(
        self,
        workload: str,
        ranges: tuple[ValueRange, ...],
        mixed: tuple[ValueRange, ...],
        *,
        is_lean: bool,
    ) -> DrawnInputs:
        # Of the first seed, which is secret and is published with the others.
        seeds = (self._draft.seeds(workload)[0],) * len(ranges)
        draw, descriptors = self._judge.draw(
            self._context.request.task,
            workload,
            self._context.request.task.tolerance_of(workload, self._admission.tolerance),
            seeds,
            tuple(value_range.distribution for value_range in ranges),
            mixed=tuple(value_range.distribution for value_range in mixed),
            is_lean=is_lean,
        )
        return DrawnInputs(draw=draw, descriptors=descriptors)

    def _report(self, failure: CandidateFailure, workload: str) -> CandidateFailure | None:
        """Take a bad end on NaN or denormals as something to know.

        A stray write stays one, and so does what is wrong where the reference asks for NaN.
        """
        kinds = {finding.kind for finding in failure.findings}
        if not kinds.isdisjoint((FindingKind.STRAY_WRITE, FindingKind.VALUE_RANGE)):
            return failure
        reason = "; ".join(finding.message for finding in failure.findings)
        finding = Finding(
            kind=FindingKind.VALUE_RANGE,
            severity=Severity.WARNING,
            message=f"on denormal, NaN or infinite inputs: {reason}",
            hint="bound loops and indices whatever the values are",
        )
        check = Check(
            kind=CheckKind.VALUE_RANGE,
            result=CheckResult.PASSED,
            workload=workload,
            note="denormal, non_finite: it did not end well there, which is reported",
        )
        self._draft.add_findings((finding,))
        self._draft.add_checks((check,))
        return None


def _skipped(workload: str, note: str) -> Check:
    return Check(
        kind=CheckKind.VALUE_RANGE, result=CheckResult.SKIPPED, workload=workload, note=note
    )


def _failure(verdicts: tuple[RangeVerdict, ...]) -> CandidateFailure | None:
    wrong = tuple(f for verdict in verdicts if verdict.is_wrong for f in verdict.findings)
    if not wrong:
        return None
    return CandidateFailure(outcome=EvaluationOutcome.WRONG_RESULT, findings=wrong)
