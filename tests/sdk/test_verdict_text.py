"""What a verdict says to people."""

from kernel_foundry.domain.check import Check, CheckKind, CheckResult
from kernel_foundry.sdk.verdict_text import checks_text


def test_failed_checks_are_named_with_their_workloads() -> None:
    """A finding tells the numbers; on which sizes they were seen is as much needed."""
    passed = Check(kind=CheckKind.SOURCE_POLICY, result=CheckResult.PASSED)
    failed = Check(kind=CheckKind.VALUE_RANGE, result=CheckResult.FAILED, workload="n=7")
    checks = (passed, failed, failed)
    assert checks_text(checks) == "1 passed, 2 failed (value range on n=7)"
    assert checks_text((passed,)) == "1 passed"
    assert checks_text(()) == ""
