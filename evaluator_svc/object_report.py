"""What inspecting object code found: all that anybody learns of it without running it."""

from dataclasses import dataclass

from evaluator_svc.behaviour.facts import KernelFacts
from evaluator_svc.policy.facts import ObjectFacts
from kernel_foundry.domain.evaluation import KernelResources
from kernel_foundry.domain.finding import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectReport:
    """What one translation unit's object code tells."""

    findings: tuple[Finding, ...]
    """Of the policy's rules; it may be loaded when none is an error."""
    numbers: ObjectFacts
    """What it computes in."""
    kernels: KernelFacts
    """What its kernels do."""
    resources: tuple[KernelResources, ...] = ()
    """What each kernel takes, in order of their names; empty where object code does not tell
    (SPIR-V)."""
