"""What came out otherwise than it was recorded."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The first thing that came out otherwise than it was recorded."""

    where: str
    """Such as "evaluation 17 (selection 21)"."""
    what: str
    """Such as "parents"."""
    recorded: str
    replayed: str


class DifferenceError(Exception):
    """Something came out otherwise than it was recorded.

    Args:
        where: As of `Difference`, as all others.
        what: Likewise.
        recorded: Shown as text.
        replayed: Shown as text.
    """

    def __init__(self, where: str, what: str, *, recorded: object, replayed: object) -> None:
        super().__init__(f"{where}: {what}")
        self.difference = Difference(
            where=where, what=what, recorded=str(recorded), replayed=str(replayed)
        )


def check_equal(where: str, what: str, *, recorded: object, replayed: object) -> None:
    """Raise a `DifferenceError` unless both are equal."""
    if recorded != replayed:
        raise DifferenceError(where, what, recorded=recorded, replayed=replayed)
