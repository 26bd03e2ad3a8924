"""The judge's results on the outputs of a candidate's runs."""

from dataclasses import dataclass

from kernel_foundry.domain.check import Check
from kernel_foundry.domain.evaluation import Correctness, PrecisionAudit
from kernel_foundry.domain.finding import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class RunComparison:
    """The judge's results on the outputs of one workload."""

    correctness: Correctness
    inputs_modified: tuple[str, ...] = ()
    """Names of inputs or parameters that the candidate changed."""
    stray_writes: tuple[str, ...] = ()
    """Names of tensors before or after which the candidate wrote."""
    is_wrong: bool = False
    is_nondeterministic: bool = False
    is_stale: bool = False
    """Outputs are those of earlier inputs."""
    findings: tuple[Finding, ...] = ()
    checks: tuple[Check, ...] = ()
    changed_state: tuple[str, ...] = ()
    """Settings of the judge's process that the task's file has changed, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeVerdict:
    """The judge's results on inputs of one distribution."""

    check: Check
    is_wrong: bool = False
    """A reason to refuse the candidate."""
    findings: tuple[Finding, ...] = ()
    audit: PrecisionAudit | None = None
    """Errors against float64; on the distributions with the trait AUDITED."""
    wide: PrecisionAudit | None = None
    """The same of the float32 outputs of a task that rounds other outputs to fewer bits."""
