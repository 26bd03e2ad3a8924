"""The grid archive: one elite for each cell of the three measures.

Holds numbers and digests only; candidates and evaluations stay in the store. Knows nothing of
SQL, of selection or of transport.
Source: MAP-Elites (Mouret and Clune 2015). Of a noisy objective the certain worth counts: a lucky
measurement has a wide interval, and so does not displace an equal kernel.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from archive_svc.told import Cell
from kernel_foundry.domain.archive import AddStatus
from kernel_foundry.domain.best import Rank, rank
from kernel_foundry.domain.measures import LEVELS

CELL_COUNT = LEVELS**3


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A correct candidate as the grid sees it."""

    digest: str
    sequence: int
    """Of the told evaluation that these numbers come from."""
    cell: Cell
    fitness: float
    """At the upper bound of the time: what it is worth for certain."""

    @property
    def rank(self) -> Rank:
        """Sort key: the least is the best."""
        return rank(self.fitness, self.sequence)


class GridArchive:
    """Cells, their elites and, for re-measurement, every other correct candidate's numbers."""

    def __init__(self) -> None:
        self._elites: dict[Cell, Entry] = {}
        self._entries: dict[str, Entry] = {}
        self._by_cell: defaultdict[Cell, dict[str, Entry]] = defaultdict(dict)
        self._ranked: tuple[Entry, ...] | None = None
        """The elites, best first; None after a change."""

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
        """Return the elites, best first; ties by the order in which they were told."""
        if self._ranked is None:
            ranked = sorted(self._elites.values(), key=lambda e: e.rank)
            self._ranked = tuple(ranked)
        return self._ranked

    def __contains__(self, digest: str) -> bool:
        return digest in self._entries

    def __iter__(self) -> Iterator[Entry]:
        """Yield every correct candidate's newest numbers."""
        return iter(self._entries.values())

    def get(self, cell: Cell) -> Entry | None:
        """Return the elite of `cell`, or None."""
        return self._elites.get(cell)

    @property
    def best(self) -> Entry | None:
        """The elite with the highest fitness, or None."""
        return next(iter(self.elites()), None)

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
