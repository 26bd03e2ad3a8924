"""What the judge found in the outputs of a candidate's runs."""

from dataclasses import dataclass

from kernel_foundry.domain.check import Check
from kernel_foundry.domain.evaluation import Correctness, PrecisionAudit
from kernel_foundry.domain.finding import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class RunComparison:
    """What the judge found in the outputs of one workload."""

    correctness: Correctness
    inputs_modified: tuple[str, ...] = ()
    """Names of inputs or parameters that the candidate changed."""
    stray_writes: tuple[str, ...] = ()
    """Names of tensors behind which, or before which, something was written."""
    is_wrong: bool = False
    is_nondeterministic: bool = False
    is_stale: bool = False
    """Outputs are what other inputs gave before."""
    findings: tuple[Finding, ...] = ()
    checks: tuple[Check, ...] = ()
    changed_state: tuple[str, ...] = ()
    """What the task's file has changed in the judge's process, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeVerdict:
    """What the judge found on inputs of one distribution."""

    check: Check
    is_wrong: bool = False
    """A reason to refuse the candidate."""
    findings: tuple[Finding, ...] = ()
    audit: PrecisionAudit | None = None
    """Errors against float64, on the distributions that are there to show them…"""
    wide: PrecisionAudit | None = None
    """…and those of outputs in float32 of a task that rounds others to fewer bits."""
