"""The report of an inspector on object code."""

from dataclasses import dataclass
from typing import Final

from evaluator_svc.behaviour.facts import KernelFacts
from evaluator_svc.policy.number_formats import ObjectFacts
from kernel_foundry.domain.evaluation import KernelResources
from kernel_foundry.domain.finding import Finding

MOST_UPDATES: Final = 64
"""Most updates of one unit; certain ones come first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnorderedUpdate:
    """A place of global memory that a kernel reads, changes and writes back without an atomic."""

    kernel: str
    axes: tuple[int, ...]
    """Dimensions of the grid, x being 0, in which all work-groups have the place in common."""
    is_certain: bool
    """False: work-groups may take turns by what they read or are given."""
    line: int | None = None
    """Line of the candidate's source; None: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectReport:
    """Report on one translation unit's object code."""

    findings: tuple[Finding, ...]
    """Findings of the policy's rules; the object code may be loaded if none is an error."""
    numbers: ObjectFacts
    """Number formats that it computes in."""
    kernels: KernelFacts
    """Facts about its kernels."""
    updates: tuple[UnorderedUpdate, ...] = ()
    """Updates that get lost if a launch has several work-groups in one of their dimensions."""
    resources: tuple[KernelResources, ...] = ()
    """Resources of each kernel, in order of their names; empty if object code does not say
    (SPIR-V)."""
