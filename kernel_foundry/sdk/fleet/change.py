"""The event of a fleet: an evaluator is away, or is back."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetChange:
    """An evaluator of a fleet went away or came back; calls go to the others meanwhile."""

    evaluator: str
    """Its name, as behind "@" in ids of its devices."""
    is_away: bool
    reason: str
    """Why it is away; "" of one that is back."""
    there: int
    """Evaluators that are not away now."""
    total: int
    """Evaluators of the fleet."""
