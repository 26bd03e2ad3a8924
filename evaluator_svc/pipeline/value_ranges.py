"""Stage value ranges: the candidate on inputs of unusual values, of one workload.

Where the reference is well defined it has to be right; elsewhere a difference is told, and no
reason to refuse. Knows nothing of how such inputs are made.
"""

from concurrent.futures import Future

from evaluator_svc.devices.site import DeviceSite
from evaluator_svc.memory_needs import has_ranges_size
from evaluator_svc.messages.exchange import RangeVerdict
from evaluator_svc.messages.locked import CandidateFailed, Done, RunRequest
from evaluator_svc.pipeline.memory_plan import sizes_of
from evaluator_svc.pipeline.record import EvaluationRecord
from evaluator_svc.pipeline.run import DrawnInputs
from evaluator_svc.processes.answers import ask_candidate
from evaluator_svc.processes.judge_client import JudgeClient
from evaluator_svc.processes.process import ChildProcess
from kernel_foundry.domain.admission import Admission, ValueRange
from kernel_foundry.domain.check import Check, CheckKind, CheckResult
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import Finding, FindingKind, Severity
from kernel_foundry.domain.request import EvaluationRequest


class RangeTrials:
    """One candidate's trials on unusual values.

    Args:
        site: The device.
        judge: Draws and compares.
        request: What is asked.
        admission: Says which ranges there are, and which of them are binding.
        record: Takes what is found, and knows the seeds.
    """

    def __init__(
        self,
        site: DeviceSite,
        judge: JudgeClient,
        request: EvaluationRequest,
        admission: Admission,
        record: EvaluationRecord,
    ) -> None:
        self._site = site
        self._judge = judge
        self._request = request
        self._admission = admission
        self._record = record
        self.drawn: list[Future[DrawnInputs]] = []
        """To be released once the runner is dead."""

    def run(self, runner: ChildProcess, *, binding: bool) -> CandidateFailed | None:
        """Run the candidate once on each range that is binding, or on each of the others.

        Others come last: the runner may be lost to them.
        """
        if binding and all(not has_ranges_size(sizes_of(w)) for w in self._admission.workloads):
            self._record.add_checks((_too_large(self._admission.workloads[0].workload),))
        for workload in self._admission.workloads:
            ranges = tuple(r for r in workload.value_ranges if r.is_binding is binding)
            if ranges:
                with self._record.stage("value_ranges"):
                    failure = self._try(runner, workload.workload, ranges)
                if failure is not None:
                    return failure if binding else self._report(failure, workload.workload)
        return None

    def _try(
        self, runner: ChildProcess, workload: str, ranges: tuple[ValueRange, ...]
    ) -> CandidateFailed | None:
        future = self._site.helpers.submit(self._draw, workload, ranges)
        self.drawn.append(future)
        drawn = future.result()
        answer = ask_candidate(
            runner,
            RunRequest(draw=drawn.draw, once=True),
            Done,
            seconds=self._request.limits.run_seconds,
            doing=f"running the kernels on unusual values, workload {workload}",
            descriptors=drawn.descriptors,
        )
        if isinstance(answer, CandidateFailed):
            return answer
        verdicts = self._judge.verify_ranges(drawn.draw.draw, ranges)
        self._record.add_checks(tuple(verdict.check for verdict in verdicts))
        failure = _failure(verdicts)
        if failure is None:
            self._record.add_findings(tuple(f for v in verdicts for f in v.findings))
        return failure

    def _draw(self, workload: str, ranges: tuple[ValueRange, ...]) -> DrawnInputs:
        # Of the first seed, which is secret and is told with the others.
        seeds = (self._record.seeds(workload)[0],) * len(ranges)
        draw, descriptors = self._judge.draw(
            self._request.task,
            workload,
            self._admission.tolerance,
            seeds,
            tuple(value_range.distribution for value_range in ranges),
        )
        return DrawnInputs(draw=draw, descriptors=descriptors)

    def _report(self, failure: CandidateFailed, workload: str) -> CandidateFailed | None:
        """Take a bad end on NaN or denormals as something to know; a stray write stays one."""
        if any(finding.kind is FindingKind.STRAY_WRITE for finding in failure.findings):
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
        self._record.add_findings((finding,))
        self._record.add_checks((check,))
        return None


def _too_large(workload: str) -> Check:
    return Check(
        kind=CheckKind.VALUE_RANGE,
        result=CheckResult.SKIPPED,
        workload=workload,
        note="all workloads are too large to be tried on unusual values; add a small one, held out",
    )


def _failure(verdicts: tuple[RangeVerdict, ...]) -> CandidateFailed | None:
    wrong = tuple(f for verdict in verdicts if verdict.is_wrong for f in verdict.findings)
    if not wrong:
        return None
    return CandidateFailed(outcome=EvaluationOutcome.WRONG_RESULT, findings=wrong)
