"""Transitions: how fitness changed from parents to children, added up for each cell.

Incremental: a told evaluation adds to a few numbers, and a generation's end shrinks them all;
history is never read again. Knows nothing of directions; `gradient` makes them of these numbers.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from archive_svc.grid import CELL_COUNT
from archive_svc.told import Cell
from kernel_foundry.domain.measures import DIMENSIONS, LEVELS

GENERATION: Final = 16
"""Transitions that count as a generation."""

DECAY: Final = 0.95
"""What a transition's weight shrinks to with each generation."""

_SHAPE: Final = (CELL_COUNT, len(DIMENSIONS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One transition, as far as the sums need it."""

    parent: Cell
    child: Cell
    """Of a failed child too, as far as its measures are known."""
    gain: float
    """Fitness of the child less that of its parent."""
    is_better: bool
    """Whether the child passed and is worth more for certain than its parent."""


def cell_index(cell: Cell) -> int:
    """Return the row of `cell` in arrays over all cells."""
    return (cell[0] * LEVELS + cell[1]) * LEVELS + cell[2]


class Transitions:
    """Sums over the transitions that leave each cell, by dimension; all `(cell, dimension)`.

    A transition that leaves a level as it is says nothing about that dimension.
    """

    def __init__(self) -> None:
        self.count = 0
        """Transitions ever added."""
        self.weight = np.zeros(_SHAPE)
        """Sum of w."""
        self.gain = np.zeros(_SHAPE)
        """Sum of w * sign(change of level) * gain."""
        self.up = np.zeros((*_SHAPE, 2))
        """Weighted moves to a higher level: all, and those that were better."""
        self.down = np.zeros((*_SHAPE, 2))
        """The same to a lower level."""
        self.misses = np.zeros(CELL_COUNT)
        """Weighted selections that aimed at a cell and did not arrive there."""

    def add(self, step: Step) -> None:
        """Add one transition."""
        row = cell_index(step.parent)
        for dimension, (before, after) in enumerate(zip(step.parent, step.child, strict=True)):
            if after == before:
                continue
            moves = self.up if after > before else self.down
            moves[row, dimension] += (1.0, float(step.is_better))
            self.weight[row, dimension] += 1.0
            self.gain[row, dimension] += step.gain if after > before else -step.gain
        self.count += 1
        if self.count % GENERATION == 0:
            for sums in (self.weight, self.gain, self.up, self.down, self.misses):
                np.multiply(sums, DECAY, out=sums)

    def miss(self, target: Cell) -> None:
        """Note that a child aimed at `target` did not arrive there."""
        self.misses[cell_index(target)] += 1.0
