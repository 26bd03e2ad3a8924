"""Makes a finding of a rule's class."""

from typing import Final

from evaluator_svc.policy.rule import RuleClass
from evaluator_svc.policy.rules import rule_of
from kernel_foundry.domain.finding import Finding, FindingKind, Severity

MAX_FINDINGS: Final = 20
"""One is enough to refuse; more help to mend."""

_SHORT: Final = 60

_KINDS: Final = {
    RuleClass.REJECT: (FindingKind.POLICY, Severity.ERROR),
    RuleClass.SUSPECT: (FindingKind.SUSPICION, Severity.WARNING),
    RuleClass.NOTE: (FindingKind.POLICY, Severity.INFO),
}


def rule_finding(rule_id: str, message: str, hint: str = "", line: int | None = None) -> Finding:
    """Return the finding of a rule; how bad it is follows from the rule's class."""
    kind, severity = _KINDS[rule_of(rule_id).rule_class]
    return Finding(
        kind=kind, severity=severity, message=message, line=line, hint=hint, rule=rule_id
    )


def short(name: str) -> str:
    """Return a candidate's own word, fit for a message."""
    return name if len(name) <= _SHORT else f"{name[:_SHORT]}…"
