"""Judges the precision of timed calls by the rules of the first runs."""

from collections.abc import Sequence

from evaluator_svc.messages.judge import PrecisionReply
from evaluator_svc.messages.locked import CandidateFailure
from evaluator_svc.pipeline.correctness.element_errors import assess_elements
from evaluator_svc.pipeline.correctness.precision import TIMED_CALLS, AssessPrecision
from evaluator_svc.pipeline.evaluation_draft import EvaluationDraft
from kernel_foundry.domain.check import CheckResult
from kernel_foundry.domain.evaluation import EvaluationOutcome


def assess_timed_calls(
    audits: Sequence[PrecisionReply],
    workload: str,
    assess_precision: AssessPrecision,
    draft: EvaluationDraft,
) -> CandidateFailure | None:
    """Record the audits of a workload's timed calls; return the first failure.

    Of those that pass, the least exact one is recorded.
    """
    for number, audited in enumerate(sorted(audits, key=_bits)):
        elements, failure = assess_elements(audited, workload, TIMED_CALLS)
        judged = assess_precision(audited, workload, TIMED_CALLS)
        if failure is None and judged.is_refused:
            failure = CandidateFailure(
                outcome=EvaluationOutcome.WRONG_RESULT, findings=judged.findings
            )
        checks = (elements, judged.check)
        draft.add_checks(
            checks if not number else tuple(c for c in checks if c.result is not CheckResult.PASSED)
        )
        if failure is not None:
            return failure
        draft.add_findings(judged.findings)
        if audited.least_exact is not None:
            draft.keep_precision(workload, audited.least_exact)
    return None


def _bits(audited: PrecisionReply) -> float:
    audit = audited.least_exact
    return audit.effective_bits if audit else audited.agreeing_bits
