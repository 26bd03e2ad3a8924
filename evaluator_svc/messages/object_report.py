"""The report of an inspector on object code."""

from dataclasses import dataclass
from typing import Final

from evaluator_svc.behaviour.facts import KernelFacts
from evaluator_svc.policy.number_formats import ObjectFacts
from kernel_foundry.domain.evaluation import KernelResources
from kernel_foundry.domain.finding import Finding

MOST_UPDATES: Final = 64
"""Of one unit; those that are certain come before others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnorderedUpdate:
    """A place of global memory that a kernel reads, changes and writes back without an atomic."""

    kernel: str
    axes: tuple[int, ...]
    """Dimensions of the grid, x being 0, in which all work-groups have the place in common."""
    is_certain: bool
    """False: work-groups may take turns by what they read or are given."""
    line: int | None = None
    """Of the candidate's source; None: it is not told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectReport:
    """Report on one translation unit's object code."""

    findings: tuple[Finding, ...]
    """Of the policy's rules; it may be loaded when none is an error."""
    numbers: ObjectFacts
    """What it computes in."""
    kernels: KernelFacts
    """What its kernels do."""
    updates: tuple[UnorderedUpdate, ...] = ()
    """What is lost where a launch has several work-groups in one of the dimensions."""
    resources: tuple[KernelResources, ...] = ()
    """What each kernel takes, in order of their names; empty where object code does not tell
    (SPIR-V)."""
