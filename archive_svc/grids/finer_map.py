"""The finer map: cells of the three measures, divided by how the work is split.

Strong kernels often share one cell of the measures. The features of their launches divide it, into
bins whose boundaries follow the candidates. Source: MAP-Elites with sliding boundaries (Fontaine et
al. 2019).
"""

from bisect import bisect_left
from collections.abc import Hashable, Iterable
from typing import Final

import numpy as np

from archive_svc.grids.grid import Entry

BINS: Final = 3
"""Bins of each feature, each with an equal share of all correct candidates."""

_FIRST_BOUNDARIES: Final = 8
"""Candidates at which the first boundaries are made. They are made anew whenever the number of
candidates has doubled, so a long run makes them a few times only."""

_QUANTILES: Final = np.arange(1, BINS) / BINS


class FinerMap:
    """The elites by cell of the finer map.

    A candidate without features is in the undivided cell of its measures.

    Args:
        entries: The run's correct candidates by sequence. They alone decide the boundaries, so a
            map that is made late has the same ones as a map that grew with the run.
    """

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries: list[Entry] = []
        self._elites: dict[Hashable, Entry] = {}
        self._ranked: tuple[Entry, ...] | None = None
        """The elites, best first; None after a change."""
        self._boundaries: tuple[tuple[float, ...], ...] = ()
        """Boundaries of each feature's bins, ascending; the last bin lies above all of them."""
        self._next_boundaries = _FIRST_BOUNDARIES
        """Number of candidates at which boundaries are made next."""
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry) -> None:
        """Add a candidate with a sequence above all others, and make new boundaries when due."""
        self._entries.append(entry)
        self._challenge(entry)
        if len(self._entries) == self._next_boundaries:
            self._next_boundaries *= 2
            self._make_boundaries()

    def elites(self) -> tuple[Entry, ...]:
        """Return the elites, best first; of equals the one added first."""
        if self._ranked is None:
            self._ranked = tuple(sorted(self._elites.values(), key=lambda e: e.rank))
        return self._ranked

    def place(self, entry: Entry) -> Hashable:
        """Return the cell of an entry: its measures, and the bin of each feature."""
        bins = zip(self._boundaries, entry.features, strict=False)
        return (entry.cell, *(bisect_left(edges, value) for edges, value in bins))

    def _challenge(self, entry: Entry) -> None:
        place = self.place(entry)
        incumbent = self._elites.get(place)
        if incumbent is None or entry.rank < incumbent.rank:
            self._elites[place] = entry
            self._ranked = None

    def _make_boundaries(self) -> None:
        seen = [e.features for e in self._entries if e.features]
        if not seen:
            return
        edges = np.quantile(np.array(seen), _QUANTILES, axis=0, method="inverted_cdf").T
        self._boundaries = tuple(tuple(sorted(set(e))) for e in edges.tolist())
        self._elites.clear()
        for entry in self._entries:
            self._challenge(entry)
