"""The gradient: in which direction along each measure a cell's children are likely to get better.

Three parts (docs/design.md §7): F, the fitness gained along a dimension; R, how much likelier an
improvement is upwards than downwards; E, the way to empty and weak cells. They are computed for all
cells at once. `selection.py` turns a direction into a target cell.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from archive_svc.grids.grid import CELL_COUNT, Entry
from archive_svc.search.transitions import Transitions
from kernel_foundry.domain.gradient import Direction, GradientCell
from kernel_foundry.domain.measures import LEVELS, Cell

SHRINKAGE: Final = 2.0
"""Kappa: F is averaged with this many transitions without gain, so a few observations move it
little."""

NEIGHBOURHOOD: Final = 0.6
"""Smoothing: transitions of a cell at Manhattan distance d have weight exp(-d / NEIGHBOURHOOD)."""

BACKING: Final = 0.5
"""Least weight of the children that a step made better, before prompts ask for that step. One child
of the cell itself is enough until it fades, or a few children of its neighbours."""

POSITIONS: Final = (
    np.stack(np.meshgrid(*[np.arange(LEVELS)] * 3, indexing="ij"), axis=-1)
    .reshape(CELL_COUNT, 3)
    .astype(float)
)
"""Levels of each cell, `(cell, dimension)`."""

_OFFSETS: Final = POSITIONS[None, :, :] - POSITIONS[:, None, :]
"""From each cell to each other one, `(cell, cell, dimension)`."""

DISTANCE: Final = np.abs(_OFFSETS).sum(axis=-1)
"""Manhattan, `(cell, cell)`."""

_SMOOTHING: Final = np.exp(-DISTANCE / NEIGHBOURHOOD)

_LENGTH: Final = np.linalg.norm(_OFFSETS, axis=-1)
# A cell does not pull on itself.
_PULL: Final = (
    (_OFFSETS / np.maximum(_LENGTH, 1.0)[..., None] / np.maximum(DISTANCE, 1.0)[..., None])
    .transpose(0, 2, 1)
    .reshape(-1, CELL_COUNT)
)
"""From each cell and dimension, one after the other, to each other cell: a matrix, for speed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientWeights:
    """Shares of the parts in the whole."""

    fitness: float = 0.4
    rate: float = 0.4
    exploration: float = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientField:
    """Directions of all cells; every array is `(cell, dimension)` unless it says otherwise."""

    total: np.ndarray
    """G; 0 where the grid ends."""
    fitness: np.ndarray
    """F, divided by its largest magnitude."""
    rate: np.ndarray
    """R, from -1 to 1."""
    exploration: np.ndarray
    """E, of length 1 or 0."""
    confidence: np.ndarray
    """`(cell,)`: n / (n + kappa) for the dimension with most observations, where n is the weight of
    the transitions seen around the cell: 0 without any, below 1."""
    backed: np.ndarray
    """`(cell, dimension, 2)` bool: whether recorded transitions speak for a step down (0) or up
    (1)."""


def gradient_field(
    transitions: Transitions, worth: np.ndarray, weights: GradientWeights
) -> GradientField:
    """Return the directions of all cells.

    F = sum of w sign(change) gain / (sum of w + kappa); R = P(better | up) - P(better | down) with
    Beta(1, 1) priors; E = the unit vector of the sum over cells of what they lack / distance;
    G = 0.4 F/max|F| + 0.4 R + 0.2 E.

    Args:
        transitions: What happened so far.
        worth: `(cell,)` fitness of each cell's elite, 0 in empty ones.
        weights: Shares of the three parts.
    """
    observed = _SMOOTHING @ transitions.weight
    fitness = (_SMOOTHING @ transitions.gain) / (observed + SHRINKAGE)
    largest = np.abs(fitness).max()
    if largest > 0:
        fitness = fitness / largest
    up, down = _smooth(transitions.up), _smooth(transitions.down)
    rate = _rate(up) - _rate(down)
    exploration = _exploration(worth, transitions.misses)
    total = weights.fitness * fitness + weights.rate * rate + weights.exploration * exploration
    return GradientField(
        total=_within(total),
        fitness=fitness,
        rate=rate,
        exploration=exploration,
        confidence=(observed / (observed + SHRINKAGE)).max(axis=1),
        backed=_backed(up, down, rate),
    )


def gradient_cells(
    island: str, field: GradientField, elites: Iterable[Entry]
) -> Iterator[GradientCell]:
    """Yield an island's field as the port gives it out: one record for each cell."""
    digests = {entry.cell: entry.digest for entry in elites}
    for index, position in enumerate(POSITIONS.astype(int).tolist()):
        cell: Cell = (position[0], position[1], position[2])
        yield GradientCell(
            cell=cell,
            island=island,
            gradient=_direction(field.total[index]),
            fitness=_direction(field.fitness[index]),
            rate=_direction(field.rate[index]),
            exploration=_direction(field.exploration[index]),
            confidence=float(field.confidence[index]),
            elite=digests.get(cell, ""),
        )


def _direction(values: np.ndarray) -> Direction:
    memory, algorithm, synchronization = values.tolist()
    return (memory, algorithm, synchronization)


def _backed(up: np.ndarray, down: np.ndarray, likelier: np.ndarray) -> np.ndarray:
    """Return which steps made a better child here or nearby, and no less often than the reverse."""
    backed = np.empty((*likelier.shape, 2), dtype=bool)
    backed[..., 0] = (down[..., 1] >= BACKING) & (likelier <= 0)
    backed[..., 1] = (up[..., 1] >= BACKING) & (likelier >= 0)
    return backed


def _smooth(moves: np.ndarray) -> np.ndarray:
    """Return moves of each cell and its neighbours, which count for less."""
    smooth: np.ndarray = (_SMOOTHING @ moves.reshape(CELL_COUNT, -1)).reshape(moves.shape)
    return smooth


def _rate(smooth: np.ndarray) -> np.ndarray:
    """Return the expected probability that a move is better, `(cell, dimension)`."""
    rate: np.ndarray = (smooth[..., 1] + 1.0) / (smooth[..., 0] + 2.0)
    return rate


def _exploration(worth: np.ndarray, misses: np.ndarray) -> np.ndarray:
    """Return unit vectors towards cells that are empty or weak; less so where aims missed."""
    best = worth.max()
    lack = 1.0 - worth / best if best > 0 else np.ones(CELL_COUNT)
    pull = (_PULL @ (lack / (1.0 + misses))).reshape(CELL_COUNT, -1)
    length = np.linalg.norm(pull, axis=1, keepdims=True)
    directions: np.ndarray = np.divide(pull, length, out=np.zeros_like(pull), where=length > 1e-12)
    return directions


def _within(total: np.ndarray) -> np.ndarray:
    """Return directions that do not leave the grid."""
    leaves = ((POSITIONS == LEVELS - 1) & (total > 0)) | ((POSITIONS == 0) & (total < 0))
    return np.where(leaves, 0.0, total)
