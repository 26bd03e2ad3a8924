"""Selections that were handed out and not answered yet: no two of them ask for the same.

In memory only: what was in flight when a process ended is asked for again.
"""

from collections import Counter
from typing import Final

from archive_svc.search.selection import Assignment

KEPT: Final = 256
"""Selections remembered until they are answered or dropped; older ones are forgotten."""


class InFlight:
    """The selections in flight, by their numbers."""

    def __init__(self) -> None:
        self._assignments: dict[int, Assignment] = {}
        self._counts: Counter[Assignment] = Counter()

    def __len__(self) -> int:
        return len(self._assignments)

    def has(self, assignment: Assignment) -> bool:
        """Return whether one in flight asks for the same."""
        return assignment in self._counts

    def get(self, selection: int | None) -> Assignment | None:
        """Return the assignment of a selection in flight, or None."""
        return None if selection is None else self._assignments.get(selection)

    def start(self, selection: int, assignment: Assignment) -> None:
        """Remember a selection; the oldest is forgotten once there are too many."""
        self._assignments[selection] = assignment
        self._counts[assignment] += 1
        if len(self._assignments) > KEPT:
            self.land(next(iter(self._assignments)))

    def land(self, selection: int | None) -> Assignment | None:
        """Return the assignment of a selection, in flight no more; None if it was not."""
        assignment = None if selection is None else self._assignments.pop(selection, None)
        if assignment is not None:
            self._counts[assignment] -= 1
            if not self._counts[assignment]:
                del self._counts[assignment]
        return assignment
