"""Faults of a candidate while it is loaded, run and timed."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import Finding, FindingKind, Severity

_HINTS: Final = {
    "illegal_access": "check every index against the tensor's size, above all in the last block",
    "resources": "smaller blocks, less shared memory or fewer registers",
    "invalid": "grid and block must lie within the limits of the device, and none may be zero",
}
_OUTCOMES: Final = {
    "illegal_access": (EvaluationOutcome.CRASHED, FindingKind.ILLEGAL_ACCESS),
}
"""By the native error's kind; any other is a launch that the driver refuses."""


class CandidateFaultError(Exception):
    """The candidate is at fault."""

    def __init__(self, outcome: EvaluationOutcome, finding: Finding) -> None:
        super().__init__(finding.message)
        self.outcome = outcome
        self.finding = finding


def fault(
    outcome: EvaluationOutcome,
    kind: FindingKind,
    message: str,
    *,
    line: int | None = None,
    hint: str = "",
) -> CandidateFaultError:
    """Return a fault with one finding."""
    finding = Finding(kind=kind, severity=Severity.ERROR, message=message, line=line, hint=hint)
    return CandidateFaultError(outcome, finding)


def launch_fault(error: Any) -> CandidateFaultError:
    """Return the fault that a native `LaunchError` reports."""
    default = (EvaluationOutcome.LAUNCH_ERROR, FindingKind.LAUNCH_RESOURCE)
    outcome, kind = _OUTCOMES.get(error.kind, default)
    return fault(outcome, kind, str(error), hint=_HINTS.get(error.kind, ""))


@contextmanager
def memory_faults(what: str) -> Iterator[None]:
    """Turn an allocation that fails into the fault of a plan that leaves too little.

    Args:
        what: Is not to be had, for the message.
    """
    import kernel_foundry_native as native

    try:
        yield
    except (MemoryError, native.OutOfMemoryError) as error:
        raise fault(
            EvaluationOutcome.PLAN_ERROR,
            FindingKind.MEMORY_LIMIT,
            f"{what} is not to be had: {error}",
            hint="ask for less scratch",
        ) from error
