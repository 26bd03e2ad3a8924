"""Transitions between cells, and the gradient that the archive learns from them.

The archive computes them: `archive_svc/search/transitions.py` and `gradient.py`.
"""

from dataclasses import dataclass

from kernel_foundry.domain.measures import Cell

Direction = tuple[float, float, float]
"""One number for each measure, in grid order: positive points to higher levels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """A step of the search: from a parent to an archived child."""

    sequence: int
    """Sequence of the child."""
    island: str
    """Role of the child's island."""
    parent: str
    """Digest of the first parent."""
    child: str
    """Digest of the child."""
    parent_cell: Cell | None
    """None for a parent whose measures are unknown."""
    child_cell: Cell | None
    """None for a child whose measures are unknown, as of one that was not built."""
    gain: float
    """Fitness of the child less that of the parent when the child was archived."""
    outcome: str
    """Value of the child's `EvaluationOutcome`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientCell:
    """The gradient field at one cell of one island."""

    cell: Cell
    island: str
    """Role of the island."""
    gradient: Direction
    """G: the weighted sum of the three parts below; 0 where the grid ends."""
    fitness: Direction
    """Expected change of fitness for a step up in each measure, as a share of the largest one in
    the grid: in [-1, 1]."""
    rate: Direction
    """Chance that a step up improves less the chance that a step down does, in [-1, 1]."""
    exploration: Direction
    """Unit vector towards empty and weak cells; zero where there is none."""
    confidence: float
    """n / (n + κ) for the measure with most observations, where n is the weight of the transitions
    seen around the cell: 0 without any, below 1."""
    elite: str
    """Digest of the cell's elite; empty for an empty cell."""
