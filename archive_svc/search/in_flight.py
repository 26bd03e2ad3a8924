"""Selections that were handed out and not answered yet: no two of them ask for the same.

In memory only: what was in flight when a process ended is forgotten, and may be selected again.
"""

from collections import Counter
from typing import Final

from archive_svc.search.selection import SelectionPlan

KEPT: Final = 256
"""Selections remembered until they are answered or dropped; older ones are forgotten."""


class InFlight:
    """The selections in flight, by their numbers."""

    def __init__(self) -> None:
        self._plans: dict[int, SelectionPlan] = {}
        self._counts: Counter[SelectionPlan] = Counter()

    def __len__(self) -> int:
        return len(self._plans)

    @property
    def seed_count(self) -> int:
        """Selections in flight that ask for something new, without a parent."""
        return sum(count for plan, count in self._counts.items() if plan.parent is None)

    def has(self, plan: SelectionPlan) -> bool:
        """Return whether one in flight asks for the same."""
        return plan in self._counts

    def get(self, selection: int | None) -> SelectionPlan | None:
        """Return the plan of a selection in flight, or None."""
        return None if selection is None else self._plans.get(selection)

    def start(self, selection: int, plan: SelectionPlan) -> None:
        """Remember a selection; the oldest is forgotten once there are too many."""
        self._plans[selection] = plan
        self._counts[plan] += 1
        if len(self._plans) > KEPT:
            self.land(next(iter(self._plans)))

    def land(self, selection: int | None) -> SelectionPlan | None:
        """Return the plan of a selection, in flight no more; None if it was not."""
        plan = None if selection is None else self._plans.pop(selection, None)
        if plan is not None:
            self._counts[plan] -= 1
            if not self._counts[plan]:
                del self._counts[plan]
        return plan
