"""How a refusal is told. Knows nothing of what is refused."""

from typing import Final

from kernel_foundry.domain.finding import Finding, FindingKind, Severity

MAX_FINDINGS: Final = 20
"""One is enough to refuse; more help to mend."""

_SHORT: Final = 60


def refusal(message: str, hint: str = "", line: int | None = None) -> Finding:
    """Return the finding of something that is not allowed."""
    return Finding(
        kind=FindingKind.POLICY, severity=Severity.ERROR, message=message, line=line, hint=hint
    )


def short(name: str) -> str:
    """Return a candidate's own word, fit for a message."""
    return name if len(name) <= _SHORT else f"{name[:_SHORT]}…"


def remark(severity: Severity, message: str, hint: str, line: int | None) -> Finding:
    """Return the finding of something that is allowed and worth telling."""
    return Finding(
        kind=FindingKind.POLICY, severity=severity, message=message, line=line, hint=hint
    )
