"""Choices that were handed out and not answered yet: no two of them ask for the same.

In memory only: what was in flight when a process ended is forgotten, and may be selected again.
"""

from collections import Counter
from typing import Final

from archive_svc.search.selection import Choice

KEPT: Final = 256
"""Selections remembered until they are answered or dropped; older ones are forgotten."""


class ChoicesInFlight:
    """The selections in flight, by their numbers."""

    def __init__(self) -> None:
        self._choices: dict[int, Choice] = {}
        self._counts: Counter[Choice] = Counter()

    def __len__(self) -> int:
        return len(self._choices)

    @property
    def seed_count(self) -> int:
        """Selections in flight that ask for something new, without a parent."""
        return sum(count for choice, count in self._counts.items() if choice.parent is None)

    def has(self, choice: Choice) -> bool:
        """Return whether one in flight asks for the same."""
        return choice in self._counts

    def get(self, selection: int | None) -> Choice | None:
        """Return the choice of a selection in flight, or None."""
        return None if selection is None else self._choices.get(selection)

    def start(self, selection: int, choice: Choice) -> None:
        """Remember a selection; the oldest is forgotten once there are too many."""
        self._choices[selection] = choice
        self._counts[choice] += 1
        if len(self._choices) > KEPT:
            self.land(next(iter(self._choices)))

    def land(self, selection: int | None) -> Choice | None:
        """Return the choice of a selection, in flight no more; None if it was not."""
        choice = None if selection is None else self._choices.pop(selection, None)
        if choice is not None:
            self._counts[choice] -= 1
            if not self._counts[choice]:
                del self._counts[choice]
        return choice
