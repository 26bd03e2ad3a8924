"""The grid archive: one elite for each cell of the three measures.

Holds numbers and digests only; candidates and evaluations stay in the store.
Source: MAP-Elites (Mouret and Clune 2015). Of a noisy objective the certain worth counts: a lucky
measurement has a wide interval, and so does not displace an equal kernel.
"""

from collections import defaultdict
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
    """Of the evaluation that these numbers come from."""
    cell: Cell
    fitness: float
    """At the upper bound of the time: what it is worth for certain."""

    @property
    def rank(self) -> Rank:
        """Sort key: the least is the best."""
        return rank(self.fitness, self.sequence)


def entry_of(result: Result) -> Entry | None:
    """Return a result as the grid sees it; None unless it passed and its cell is known."""
    if not result.passed or result.cell is None:
        return None
    return Entry(
        digest=result.digest, sequence=result.sequence, cell=result.cell, fitness=result.fitness
    )


class GridArchive:
    """Cells, their elites and, for re-measurement, every other correct candidate's numbers."""

    def __init__(self) -> None:
        self._elites: dict[Cell, Entry] = {}
        self._entries: dict[str, Entry] = {}
        self._by_cell: defaultdict[Cell, dict[str, Entry]] = defaultdict(dict)
        self._ranked: tuple[Entry, ...] | None = None
        """The elites, best first; None after a change."""

    def __contains__(self, digest: str) -> bool:
        return digest in self._entries

    def add(self, entry: Entry) -> tuple[AddStatus, float]:
        """Add a correct candidate, or replace its earlier measurement.

        Returns:
            What became of it, and the fitness its cell gained (0 when it was not added).
        """
        previous = self._forget(entry.digest)
        self._entries[entry.digest] = entry
        self._by_cell[entry.cell][entry.digest] = entry
        if previous is not None and self._elites.get(previous.cell) is previous:
            self._refill(previous.cell)
            now = self._elites.get(entry.cell)
            if now is entry:
                return AddStatus.IMPROVE_EXISTING, max(entry.fitness - previous.fitness, 0.0)
        return self._challenge(entry)

    def discard(self, digest: str) -> None:
        """Forget a candidate that failed when it was measured again."""
        entry = self._forget(digest)
        if entry is not None and self._elites.get(entry.cell) is entry:
            self._refill(entry.cell)

    def elites(self) -> tuple[Entry, ...]:
        """Return the elites, best first; of equals the one added first."""
        if self._ranked is None:
            ranked = sorted(self._elites.values(), key=lambda e: e.rank)
            self._ranked = tuple(ranked)
        return self._ranked

    @property
    def best(self) -> Entry | None:
        """The elite with the highest fitness, or None."""
        return next(iter(self.elites()), None)

    @property
    def best_fitness(self) -> float:
        """Of the best elite; 0 where there is none."""
        return 0.0 if self.best is None else self.best.fitness

    def worth(self) -> np.ndarray:
        """Return the fitness of each cell's elite, 0 in empty cells; `(cell,)`."""
        worth = np.zeros(CELL_COUNT)
        for entry in self.elites():
            worth[cell_index(entry.cell)] = entry.fitness
        return worth

    def _challenge(self, entry: Entry) -> tuple[AddStatus, float]:
        incumbent = self._elites.get(entry.cell)
        if incumbent is not None and incumbent.rank <= entry.rank:
            return AddStatus.NOT_ADDED, 0.0
        self._elites[entry.cell] = entry
        self._ranked = None
        if incumbent is None:
            return AddStatus.NEW, entry.fitness
        return AddStatus.IMPROVE_EXISTING, entry.fitness - incumbent.fitness

    def _refill(self, cell: Cell) -> None:
        """Choose the elite of `cell` anew: its incumbent was measured again."""
        self._elites.pop(cell, None)
        self._ranked = None
        for rival in sorted(self._by_cell[cell].values(), key=lambda e: e.sequence):
            self._challenge(rival)

    def _forget(self, digest: str) -> Entry | None:
        entry = self._entries.pop(digest, None)
        if entry is not None:
            del self._by_cell[entry.cell][digest]
        return entry
