"""Assesses a candidate by elements that are far from the reference by their own size.

The tolerance is in units of a row's scale, so a kernel could leave out elements that are small
beside it. Where the reference is well conditioned, one such element in 1024 is WRONG_RESULT.
"""

from typing import Final

from evaluator_svc.messages.judge import FarElements, PrecisionReply
from evaluator_svc.messages.locked import CandidateFailure
from evaluator_svc.policy.finding import check_result, rule_finding
from kernel_foundry.domain.check import Check, CheckKind, CheckResult
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import Figure

_REFUSED_SHARE: Final = 1 / 1024
"""Share of an output's elements: leaving out fewer gains nothing, and single ones are chance."""

_ZERO_SHARE: Final = 0.5
"""Share of the far elements that are zero, from which all are called zero."""


def assess_elements(
    audited: PrecisionReply, workload: str, inputs: str = ""
) -> tuple[Check, CandidateFailure | None]:
    """Return the check of a workload's elements, and the failure where too many are far.

    `inputs` names the calls that they belong to, such as "timed calls"; empty: ordinary ones.
    """
    far = audited.far
    where = f"{workload} ({inputs})" if inputs else workload
    if far is None:
        # Without an exact result nobody knows which elements are far.
        is_known = audited.least_exact is not None or audited.agreeing_bits > 0
        check = Check(
            kind=CheckKind.ELEMENTS,
            result=CheckResult.PASSED if is_known else CheckResult.SKIPPED,
            workload=workload,
            note=inputs if is_known else audited.note,
        )
        return check, None
    evidence = (
        Figure(name="far_share", value=far.share),
        Figure(name="zero_share", value=far.zero_share),
        Figure(name="element_count", value=float(far.element_count)),
        Figure(name="far_error", value=far.least),
    )
    if far.share < _REFUSED_SHARE:
        check = Check(
            kind=CheckKind.ELEMENTS,
            result=CheckResult.PASSED,
            workload=workload,
            figures=evidence,
            note=inputs,
        )
        return check, None
    finding = rule_finding(
        "numbers.elements",
        f"{_what(far)}, workload {where}; the reference is well conditioned there,"
        " however small its values are beside the rest of their row",
        "Compute every element: what is small beside its row counts as well.",
        evidence=evidence,
    )
    check = Check(
        kind=CheckKind.ELEMENTS,
        result=check_result(finding),
        workload=workload,
        figures=evidence,
        note=finding.message,
    )
    failure = CandidateFailure(outcome=EvaluationOutcome.WRONG_RESULT, findings=(finding,))
    return check, failure


def _what(far: FarElements) -> str:
    share = f"{far.share:.1%} of the outputs"
    if far.zero_share >= _ZERO_SHARE * far.share:
        return f"{far.zero_share:.1%} of the outputs are zero, where the reference has none"
    if far.is_repeated:
        return f"{share} hold one repeated value, where the reference has none"
    return f"{share} are off by more than 1/{round(1 / far.least)} of their own size"
