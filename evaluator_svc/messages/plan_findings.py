"""Turns refusals of the launch-plan language into findings, in builder, runner and supervisor."""

from typing import Final

from kernel_foundry.domain.finding import Figure, Finding, FindingKind, Severity
from kernel_foundry.plan.errors import NotMeant, PlanError

_NOT_MEANT: Final = Figure(name="not_meant", value=1.0)


def plan_finding(error: PlanError) -> Finding:
    """Return the finding that says what `error` says."""
    return Finding(
        kind=FindingKind.PLAN,
        severity=Severity.ERROR,
        message=error.message,
        line=error.line,
        evidence=(_NOT_MEANT,) if isinstance(error, NotMeant) else (),
    )


def is_not_meant(finding: Finding) -> bool:
    """Return whether a finding says that a configuration is not meant, by WHERE or `require`."""
    return finding.kind is FindingKind.PLAN and _NOT_MEANT in finding.evidence
