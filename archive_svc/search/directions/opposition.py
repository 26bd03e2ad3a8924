"""Which findings of a verdict speak against a step.

So no direction of the search's own contradicts what was measured; a cell that the user pins may.
What the findings advise is in `evaluator_svc/diagnosis`.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from kernel_foundry.domain.finding import Finding, FindingKind
from kernel_foundry.domain.measures import DIMENSIONS, Cell

_FULL: Final = frozenset({FindingKind.SPILL, FindingKind.REGISTER_PRESSURE, FindingKind.OCCUPANCY})
"""Registers or shared memory are scarce already."""

_AGAINST: Final[Mapping[tuple[str, int, int], frozenset[FindingKind]]] = {
    ("memory", 1, 2): frozenset({FindingKind.OCCUPANCY}),
    ("memory", 2, 3): _FULL,
    ("memory", 3, 2): frozenset({FindingKind.MEMORY_BOUND}),
    ("memory", 2, 1): frozenset({FindingKind.MEMORY_BOUND}),
    ("memory", 1, 0): frozenset({FindingKind.MEMORY_BOUND, FindingKind.STRIDED_ACCESS}),
    ("algorithm", 2, 3): _FULL,
    ("algorithm", 3, 2): frozenset({FindingKind.COMPUTE_BOUND}),
    ("algorithm", 2, 1): frozenset({FindingKind.COMPUTE_BOUND, FindingKind.LATENCY_BOUND}),
    ("algorithm", 1, 0): frozenset(
        {FindingKind.COMPUTE_BOUND, FindingKind.MEMORY_BOUND, FindingKind.LAUNCH_BOUND}
    ),
    ("synchronization", 2, 3): frozenset({FindingKind.LAUNCH_BOUND}),
    ("synchronization", 3, 2): frozenset({FindingKind.LATENCY_BOUND}),
    ("synchronization", 1, 0): frozenset({FindingKind.LATENCY_BOUND}),
}
"""By dimension, level before and level after."""


def is_opposed(findings: Iterable[Finding], cell: Cell, target: Cell) -> bool:
    """Return whether a verdict's findings speak against a step on the way to `target`.

    Args:
        findings: Of a kernel in `cell`.
        cell: Where it is.
        target: Where the direction points.
    """
    kinds = {finding.kind for finding in findings}
    for dimension, level, goal in zip(DIMENSIONS, cell, target, strict=True):
        step = 1 if goal > level else -1
        for left in range(level, goal, step):
            if kinds & _AGAINST.get((dimension, left, left + step), frozenset()):
                return True
    return False
