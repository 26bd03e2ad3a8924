"""The measures of a candidate (its coordinates in the archive), and why.

From what the compiler made of it, as `evaluator_svc.inspector` read it; words in comments and names
decide nothing. `levels` has the rule of each level.
"""

from evaluator_svc.behaviour.facts import KernelFacts, Scope
from evaluator_svc.behaviour.levels import PlanCounts, algorithm, memory, synchronization
from kernel_foundry.domain.measures import Measures

__all__ = ["KernelFacts", "PlanCounts", "Scope", "explain", "measures"]


def measures(facts: KernelFacts, counts: PlanCounts) -> Measures:
    """Return the coordinates of a candidate."""
    return Measures(
        memory=memory(facts).level,
        algorithm=algorithm(facts, counts).level,
        synchronization=synchronization(facts, counts).level,
    )


def explain(facts: KernelFacts, counts: PlanCounts) -> tuple[str, ...]:
    """Return one line for each measure: its level and why."""
    found = (
        ("memory", memory(facts)),
        ("algorithm", algorithm(facts, counts)),
        ("synchronization", synchronization(facts, counts)),
    )
    return tuple(f"{name} {level.level}: {level.reason}" for name, level in found)
