"""Selection: which parents the next proposal gets, and where it should go.

Strategies are data in a registry and share one interface, so that they can be compared at equal
budget. A plan names candidates by digest; the archive fills in the texts. Knows nothing of SQL.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from archive_svc.grid import Cell, Entry, GridArchive
from kernel_foundry.domain.candidate import Operator
from kernel_foundry.domain.measures import LEVELS

SEED_PROPOSALS = 4
"""Seeds before the first mutation, so that the search starts from more than one point."""

TEMPERATURE = 0.05
"""Of the softmax over fitness; fitness differences that matter are a few hundredths."""

EPSILON = 0.1
"""Share of uniform choice in fitness-proportional selection, so that no elite starves."""

INSPIRATIONS = 2

_OPERATOR_WEIGHTS: Mapping[Operator, float] = {
    Operator.SEED: 0.1,
    Operator.MUTATE: 0.6,
    Operator.COMBINE: 0.2,
    Operator.REPAIR: 0.1,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionPlan:
    """A selection by digest."""

    operator: Operator
    parent: str | None
    inspirations: tuple[str, ...]
    target: Cell | None


ParentWeights = Callable[[Sequence[Entry]], np.ndarray]
"""Elites to `(elite,)` float64 probabilities that sum to 1."""


def fitness_weights(elites: Sequence[Entry]) -> np.ndarray:
    """Return (1 - EPSILON) * softmax(fitness / TEMPERATURE) + EPSILON * uniform."""
    scores = np.array([e.fitness for e in elites]) / TEMPERATURE
    soft = np.exp(scores - scores.max())
    weights: np.ndarray = (1 - EPSILON) * soft / soft.sum() + EPSILON / len(elites)
    return weights


def uniform_weights(elites: Sequence[Entry]) -> np.ndarray:
    """Return equal probabilities."""
    return np.full(len(elites), 1 / len(elites))


STRATEGIES: Mapping[str, ParentWeights] = {
    "fitness": fitness_weights,
    "uniform": uniform_weights,
}


def plan_selection(
    *,
    strategy: str,
    grid: GridArchive,
    repairable: Sequence[str],
    sequence: int,
    rng: np.random.Generator,
) -> SelectionPlan:
    """Return the assignment number `sequence` of a run.

    Args:
        strategy: A key of `STRATEGIES`.
        grid: The run's archive.
        repairable: Digests of failed candidates that nobody has tried to repair, oldest first.
        sequence: Selections made before this one.
        rng: Every random choice comes from here.
    """
    elites = grid.elites()
    operator = _choose_operator(len(elites), len(repairable), sequence, rng)
    if operator is Operator.SEED:
        return SelectionPlan(operator=operator, parent=None, inspirations=(), target=None)
    if operator is Operator.REPAIR:
        return SelectionPlan(operator=operator, parent=repairable[-1], inspirations=(), target=None)
    weights = STRATEGIES[strategy](elites)
    parent = elites[int(rng.choice(len(elites), p=weights))]
    others = [e for e in elites if e is not parent]
    count = min(INSPIRATIONS, len(others))
    picked: list[int] = rng.choice(len(others), size=count, replace=False).tolist() if count else []
    return SelectionPlan(
        operator=operator,
        parent=parent.digest,
        inspirations=tuple(others[i].digest for i in picked),
        target=_neighbour(parent.cell, rng),
    )


def _choose_operator(
    elite_count: int, repairable_count: int, sequence: int, rng: np.random.Generator
) -> Operator:
    possible = {
        Operator.SEED: True,
        Operator.MUTATE: elite_count >= 1,
        Operator.COMBINE: elite_count >= 2,
        Operator.REPAIR: repairable_count > 0,
    }
    if sequence < SEED_PROPOSALS:
        return Operator.SEED
    open_to = [o for o, is_possible in possible.items() if is_possible]
    weights = np.array([_OPERATOR_WEIGHTS[o] for o in open_to])
    return open_to[int(rng.choice(len(open_to), p=weights / weights.sum()))]


def _neighbour(cell: Cell, rng: np.random.Generator) -> Cell:
    """Return a random cell one step away along one measure."""
    steps = [(d, s) for d in range(len(cell)) for s in (-1, 1) if 0 <= cell[d] + s < LEVELS]
    dimension, step = steps[int(rng.integers(len(steps)))]
    moved = list(cell)
    moved[dimension] += step
    return (moved[0], moved[1], moved[2])
