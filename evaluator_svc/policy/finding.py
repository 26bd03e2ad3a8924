"""Makes a finding of a rule's class."""

from typing import Final

from evaluator_svc.policy.rule import RuleClass
from evaluator_svc.policy.rules import rule_of
from kernel_foundry.domain.check import CheckResult
from kernel_foundry.domain.finding import Figure, Finding, FindingKind, Severity

MAX_FINDINGS: Final = 20
"""Findings reported at most: one refuses, more help a repair."""

_SHORT: Final = 60

_SEVERITIES: Final = {
    RuleClass.REJECT: Severity.ERROR,
    RuleClass.SUSPECT: Severity.WARNING,
    RuleClass.NOTE: Severity.INFO,
}
_RESULTS: Final = {
    Severity.ERROR: CheckResult.FAILED,
    Severity.WARNING: CheckResult.SUSPECT,
    Severity.INFO: CheckResult.PASSED,
}


def rule_finding(
    rule_id: str,
    message: str,
    hint: str = "",
    line: int | None = None,
    evidence: tuple[Figure, ...] = (),
) -> Finding:
    """Return the finding of a rule; its kind and severity follow from the rule's class."""
    rule = rule_of(rule_id)
    is_suspicion = rule.rule_class is RuleClass.SUSPECT
    return Finding(
        kind=FindingKind.SUSPICION if is_suspicion else rule.refusal,
        severity=_SEVERITIES[rule.rule_class],
        message=message,
        line=line,
        evidence=evidence,
        hint=hint,
        rule=rule_id,
    )


def check_result(finding: Finding) -> CheckResult:
    """Return the result of a check that a rule's finding decides."""
    return _RESULTS[finding.severity]


def short(name: str) -> str:
    """Return a candidate's own word, fit for a message."""
    return name if len(name) <= _SHORT else f"{name[:_SHORT]}…"
