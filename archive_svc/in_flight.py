"""Selections that were handed out and not told yet: no two of them ask for the same.

In memory only: what was in flight when a process ended is asked for again. Knows nothing of how
selections are made.
"""

from collections import Counter
from typing import Final

from archive_svc.selection import SelectionPlan

KEPT: Final = 256
"""Selections remembered until they are told or dropped; older ones will not be."""


class InFlight:
    """The selections in flight, by their numbers."""

    def __init__(self) -> None:
        self._plans: dict[int, SelectionPlan] = {}
        self._assigned: Counter[tuple[object, ...]] = Counter()

    def __len__(self) -> int:
        return len(self._plans)

    def has_assignment(self, plan: SelectionPlan) -> bool:
        """Return whether one in flight asks for the same as `plan`."""
        return plan.assignment in self._assigned

    def island_of(self, selection: int | None) -> str | None:
        """Return the island of a selection in flight, or None."""
        plan = None if selection is None else self._plans.get(selection)
        return None if plan is None else plan.island

    def start(self, selection: int, plan: SelectionPlan) -> None:
        """Remember a selection; the oldest is forgotten once there are too many."""
        self._plans[selection] = plan
        self._assigned[plan.assignment] += 1
        if len(self._plans) > KEPT:
            self.land(next(iter(self._plans)))

    def land(self, selection: int | None) -> SelectionPlan | None:
        """Return the plan of a selection, which is in flight no more; None if it was not."""
        plan = None if selection is None else self._plans.pop(selection, None)
        if plan is not None:
            self._assigned[plan.assignment] -= 1
            if not self._assigned[plan.assignment]:
                del self._assigned[plan.assignment]
        return plan
