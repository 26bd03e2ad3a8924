"""The grid: one elite for each cell of the three measures.

Holds numbers and digests only; candidates and evaluations stay in the store.
Source: MAP-Elites (Mouret and Clune 2015). The objective is noisy, so candidates compete with its
lower bound: a lucky measurement has a wide interval, and does not displace an equal kernel.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from archive_svc.grids.result import Result
from kernel_foundry.domain.archive import AddStatus
from kernel_foundry.domain.best import Rank, rank
from kernel_foundry.domain.measures import LEVELS, Cell

CELL_COUNT: Final = LEVELS**3


def cell_index(cell: Cell) -> int:
    """Return the row of `cell` in arrays over all cells."""
    return (cell[0] * LEVELS + cell[1]) * LEVELS + cell[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A correct candidate as the grid sees it."""

    digest: str
    sequence: int
    """Sequence of the evaluation that these numbers come from."""
    cell: Cell
    fitness: float
    """Fitness at the upper bound of the time, so its lower bound."""
    features: tuple[float, ...] = ()
    """Features of `kernel_foundry.domain.launch_facts`; empty: not known."""

    @property
    def rank(self) -> Rank:
        """Sort key by which the best comes first."""
        return rank(self.fitness, self.sequence)


def entry_of(result: Result) -> Entry | None:
    """Return a result as the grid sees it; None unless it passed and its cell is known."""
    if not result.passed or result.cell is None:
        return None
    return Entry(
        digest=result.digest,
        sequence=result.sequence,
        cell=result.cell,
        fitness=result.fitness,
        features=result.features,
    )


class Grid:
    """Cells, their elites and, for re-measurement, every other correct candidate's numbers."""

    def __init__(self) -> None:
        self._elites: dict[Cell, Entry] = {}
        self._entries: dict[str, Entry] = {}
        self.worth = np.zeros(CELL_COUNT)
        """`(cell,)` fitness of each cell's elite, 0 in empty ones; only read by others."""
        self._ranked: tuple[Entry, ...] | None = None
        """The elites, best first; None after a change."""

    def __contains__(self, digest: str) -> bool:
        return digest in self._entries

    def add(self, entry: Entry) -> tuple[AddStatus, float]:
        """Add a correct candidate, or replace its earlier measurement.

        Returns:
            Its status in the grid, and the fitness that its cell gained (0 if it is not the elite).
        """
        previous = self._entries.get(entry.digest)
        self._entries[entry.digest] = entry
        if previous is not None and self._elites.get(previous.cell) is previous:
            self._refill(previous.cell)
            if self._elites.get(entry.cell) is entry:
                return AddStatus.IMPROVE_EXISTING, max(entry.fitness - previous.fitness, 0.0)
        incumbent = self._elites.get(entry.cell)
        if incumbent is not None and incumbent.rank <= entry.rank:
            return AddStatus.NOT_ADDED, 0.0
        self._occupy(entry.cell, entry)
        if incumbent is None:
            return AddStatus.NEW, entry.fitness
        return AddStatus.IMPROVE_EXISTING, entry.fitness - incumbent.fitness

    def discard(self, digest: str) -> None:
        """Forget a candidate that failed when it was measured again."""
        entry = self._entries.pop(digest, None)
        if entry is not None and self._elites.get(entry.cell) is entry:
            self._refill(entry.cell)

    def elites(self) -> tuple[Entry, ...]:
        """Return the elites, best first; of equals the one added first."""
        if self._ranked is None:
            self._ranked = tuple(sorted(self._elites.values(), key=lambda e: e.rank))
        return self._ranked

    @property
    def best(self) -> Entry | None:
        """The elite with the highest fitness, or None."""
        elites = self.elites()
        return elites[0] if elites else None

    @property
    def best_fitness(self) -> float:
        """Fitness of the best elite; 0 without any."""
        elites = self.elites()
        return elites[0].fitness if elites else 0.0

    def _refill(self, cell: Cell) -> None:
        """Choose the elite of `cell` anew: its incumbent was measured again."""
        rivals = (entry for entry in self._entries.values() if entry.cell == cell)
        self._occupy(cell, min(rivals, key=lambda e: e.rank, default=None))

    def _occupy(self, cell: Cell, elite: Entry | None) -> None:
        self._ranked = None
        if elite is None:
            self._elites.pop(cell, None)
            self.worth[cell_index(cell)] = 0.0
        else:
            self._elites[cell] = elite
            self.worth[cell_index(cell)] = elite.fitness
