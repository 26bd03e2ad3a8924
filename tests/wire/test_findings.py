"""The order of findings: the first error leads everywhere, notes come after."""

from kernel_foundry.domain.finding import (
    Finding,
    FindingKind,
    Severity,
    blamed,
    errors_first,
    headline,
)


def finding(severity: Severity, message: str) -> Finding:
    return Finding(kind=FindingKind.POLICY, severity=severity, message=message)


NOTE = finding(Severity.INFO, "the kernels compute in float16")
WARNING = finding(Severity.WARNING, "the median is known to ±7% only")
FIRST = finding(Severity.ERROR, "all elements are off\nby a factor of two")
SECOND = finding(Severity.ERROR, "the input x was written")


def test_errors_lead_and_each_severity_keeps_its_order() -> None:
    assert errors_first((NOTE, FIRST, WARNING, SECOND)) == (FIRST, SECOND, WARNING, NOTE)


def test_a_failure_is_put_down_to_its_errors_and_else_to_all() -> None:
    assert blamed((NOTE, FIRST, SECOND)) == (FIRST, SECOND)
    assert blamed((NOTE, WARNING)) == (WARNING, NOTE)


def test_the_headline_is_the_first_line_of_the_first_error() -> None:
    assert headline((NOTE, FIRST, SECOND)) == "all elements are off"
    assert headline((NOTE,)) == NOTE.message
    assert headline(()) == ""
