"""Transitions: how fitness changed from parents to children, added up for each cell.

An evaluation adds to a few numbers, and the end of a generation shrinks all of them; history is
never read again. `gradient.py` turns these sums into directions.
"""

from typing import Final

import numpy as np

from archive_svc.grids.grid import CELL_COUNT, cell_index
from kernel_foundry.domain.measures import DIMENSIONS, Cell

GENERATION: Final = 16
"""Transitions in a generation."""

DECAY: Final = 0.95
"""Factor by which each generation shrinks a transition's weight."""

_SHAPE: Final = (CELL_COUNT, len(DIMENSIONS))


class Transitions:
    """Sums over the transitions that leave each cell, by dimension; all `(cell, dimension)`.

    A transition counts for the dimensions whose level it changes.
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

    def add(self, parent: Cell, child: Cell, *, gain: float, is_better: bool) -> None:
        """Add one transition.

        Args:
            parent: Cell of the parent.
            child: Cell of the child; of a failed child too, as far as its measures are known.
            gain: Fitness of the child less that of its parent.
            is_better: Whether the child passed and is worth more for certain than its parent.
        """
        row = cell_index(parent)
        for dimension, (before, after) in enumerate(zip(parent, child, strict=True)):
            if after == before:
                continue
            moves = self.up if after > before else self.down
            moves[row, dimension, 0] += 1.0
            moves[row, dimension, 1] += is_better
            self.weight[row, dimension] += 1.0
            self.gain[row, dimension] += gain if after > before else -gain
        self.count += 1
        if self.count % GENERATION == 0:
            for sums in (self.weight, self.gain, self.up, self.down, self.misses):
                np.multiply(sums, DECAY, out=sums)

    def miss(self, target: Cell) -> None:
        """Note that a child aimed at `target` did not arrive there."""
        self.misses[cell_index(target)] += 1.0
