"""Selection: what the next proposal is made of and which cell it aims at.

The functions here choose parents, target cells and inspirations; `strategies.py` combines them, and
`proposal_choice.py` uses a strategy. A choice names candidates by digest.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

import numpy as np

from archive_svc.grids.grid import Entry, cell_index
from archive_svc.search.gradient import POSITIONS, GradientField
from archive_svc.search.weighted_choice import choose, choose_distinct
from kernel_foundry.domain.candidate import Operator
from kernel_foundry.domain.measures import LEVELS, Cell

INSPIRATIONS_SELECTED: Final = 2
"""Most elites of other cells that a selection names beside the parent."""

EPSILON: Final = 0.05
"""Share of uniform choice, so that no elite starves."""

ALPHA: Final = 0.2
"""Share of the choice that follows the gradient."""

RELATIVE_TEMPERATURE: Final = 0.05
"""Temperature of the softmax over fitness, as a share of the elites' range of fitness."""

_LEAST_TEMPERATURE: Final = 1e-4
"""Smaller differences of fitness are noise."""

STAY: Final = 0.2
"""Score of not moving, beside a total gradient of the order of one."""

AIM_TEMPERATURE: Final = 0.2
"""Temperature of the softmax over the moves from a parent's cell."""

_MOVES: Final = np.array(
    [(m, a, s) for m in (0, 1, -1) for a in (0, 1, -1) for s in (0, 1, -1)], dtype=float
)
"""Every step to a neighbouring cell, diagonal ones too."""

_STAYING: Final = 0
"""Index of the move that stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The choices for one proposal; equal ones ask for the same proposal."""

    island: str
    """Name of the island that asks."""
    operator: Operator
    parent: str | None = None
    """Digest; None for a seed."""
    inspirations: tuple[str, ...] = ()
    """Digests."""
    target: Cell | None = None
    """Cell to aim at; None: no direction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectionContext:
    """The facts about an island that a strategy uses."""

    emphasis: tuple[float, float, float]
    """The island's emphasis: weight of the direction along each measure."""
    elites: Sequence[Entry]
    """Best first; where nothing passed yet, those of the other islands."""
    visitors: Sequence[Entry]
    """Elites of the other islands, or of the finer map."""
    field: Callable[[], GradientField]
    """Makes the directions of all cells; not every strategy asks for them."""
    curiosity: Mapping[str, float]
    """Curiosity of each elite, see `curiosity.py`."""
    place: Callable[[Entry], Hashable] = attrgetter("cell")
    """Cell of an elite in the map that inspirations are taken from."""


Parents = Callable[[SelectionContext], np.ndarray]
"""Maps a context to `(elite,)` float64 probabilities that sum to 1."""

Aim = Callable[[SelectionContext, Entry, Sequence[Entry], np.random.Generator], Cell | None]
"""Maps a context, a parent and the elites shown beside it to a target cell, or to None for no
direction."""


def temperature(fitnesses: np.ndarray) -> float:
    """Return the softmax's temperature for these fitnesses."""
    spread = float(fitnesses.max() - fitnesses.min())
    return max(RELATIVE_TEMPERATURE * spread, _LEAST_TEMPERATURE)


def fitness_parents(context: SelectionContext) -> np.ndarray:
    """Return (1 - EPSILON) * softmax(fitness / temperature) + EPSILON * uniform."""
    soft = _softmax_of_fitness(context)
    weights: np.ndarray = (1 - EPSILON) * soft + EPSILON / len(soft)
    return weights


def gradient_parents(context: SelectionContext) -> np.ndarray:
    """Return (1 - ALPHA - EPSILON) * softmax + ALPHA * normalised potential + EPSILON * uniform."""
    soft = _softmax_of_fitness(context)
    rows = [cell_index(e.cell) for e in context.elites]
    potential = np.abs(context.field().total[rows]).sum(axis=1)
    # Potential counts in proportion to the elite's share by fitness.
    potential = potential * soft
    total = potential.sum()
    share = potential / total if total > 0 else soft
    weights: np.ndarray = (1 - ALPHA - EPSILON) * soft + ALPHA * share + EPSILON / len(soft)
    return weights


def uniform_parents(context: SelectionContext) -> np.ndarray:
    """Return equal probabilities."""
    return np.full(len(context.elites), 1 / len(context.elites))


def curiosity_parents(context: SelectionContext) -> np.ndarray:
    """Return (1 - EPSILON) * curiosity + EPSILON * uniform (Source: Cully and Demiris 2018)."""
    scores = np.array([context.curiosity[e.digest] for e in context.elites])
    weights: np.ndarray = (1 - EPSILON) * scores / scores.sum() + EPSILON / len(scores)
    return weights


def no_aim(
    _context: SelectionContext, _parent: Entry, _shown: Sequence[Entry], _rng: np.random.Generator
) -> None:
    """Give no direction."""
    return


def gradient_aim(
    context: SelectionContext, parent: Entry, shown: Sequence[Entry], rng: np.random.Generator
) -> Cell | None:
    """Return a cell near `parent`'s where the gradient points, or None where it says little.

    Only steps that something backs: recorded transitions, or an elite shown to the proposal that
    is worth as much as the parent. That a cell is empty backs nothing.
    """
    row = cell_index(parent.cell)
    direction = context.field().total[row] * context.emphasis
    ends = POSITIONS[row] + _MOVES
    inside = ((ends >= 0) & (ends < LEVELS)).all(axis=1)
    down, up = _backed_steps(context.field().backed[row], parent, shown).T
    allowed = ((_MOVES >= 0) | down).all(axis=1) & ((_MOVES <= 0) | up).all(axis=1)
    scores = np.where(inside & allowed, _MOVES @ direction, -np.inf)
    scores[_STAYING] = STAY
    chances = np.exp((scores - scores.max()) / AIM_TEMPERATURE)
    move = choose(rng, chances)
    if move == _STAYING:
        return None
    memory, algorithm, synchronization = ends[move].astype(int).tolist()
    return (memory, algorithm, synchronization)


def _backed_steps(recorded: np.ndarray, parent: Entry, shown: Sequence[Entry]) -> np.ndarray:
    """Return `(dimension, 2)`: which steps down (0) and up (1) something speaks for."""
    backed = recorded.copy()
    for entry in shown:
        if entry.fitness < parent.fitness:
            continue
        for dimension, (here, there) in enumerate(zip(parent.cell, entry.cell, strict=True)):
            if there != here:
                backed[dimension, int(there > here)] = True
    return backed


def inspirations(
    context: SelectionContext, parent: Entry, rng: np.random.Generator
) -> tuple[Entry, ...]:
    """Return elites of other cells to learn from: better ones likelier, other islands' too."""
    own = context.place(parent)
    others = {e.digest: e for e in (*context.elites, *context.visitors) if context.place(e) != own}
    found = list(others.values())
    count = min(INSPIRATIONS_SELECTED, len(found))
    if not count:
        return ()
    weights = _closeness_to_best(found) + 1e-3
    return tuple(found[i] for i in choose_distinct(rng, weights, count))


def _softmax_of_fitness(context: SelectionContext) -> np.ndarray:
    soft = _closeness_to_best(context.elites)
    shares: np.ndarray = soft / soft.sum()
    return shares


def _closeness_to_best(entries: Sequence[Entry]) -> np.ndarray:
    """Return exp((fitness - best) / temperature); `(entry,)`, 1 for the best."""
    fitnesses = np.array([e.fitness for e in entries])
    closeness: np.ndarray = np.exp((fitnesses - fitnesses.max()) / temperature(fitnesses))
    return closeness
