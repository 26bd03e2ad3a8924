"""What each run of a suite gets of the suite's budget.

A run that begins gets an equal share, among the runs that wait, of what is left, and never more
than a run may have by itself. What a run did not use is left again when it ends, so the later ones
get more. At no time do the shares of runs that are under way and what was used exceed the whole.
"""

import math


def left_of(whole: float | None, used: float, promised: float) -> float | None:
    """Return what is left to give; None: unlimited.

    Args:
        whole: Budget of the suite; None: unlimited.
        used: By runs that have ended.
        promised: To runs that are under way.
    """
    return None if whole is None else max(whole - used - promised, 0.0)


def share(left: float | None, own: float | None, waiting: int) -> float | None:
    """Return what one of `waiting` runs gets; None: unlimited.

    Args:
        left: Of the suite's budget; None: unlimited.
        own: Most that one run may have; None: unlimited.
        waiting: Runs that have not begun, this one included.
    """
    if left is None:
        return own
    equal = left / waiting
    return equal if own is None else min(own, equal)


def whole_share(left: float | None, own: int | None, waiting: int) -> int | None:
    """Return the same of what comes in whole numbers, rounded down."""
    given = share(left, own, waiting)
    return None if given is None else math.floor(given)


def minutes_share(
    left: float | None, own: float | None, *, waiting: int, workers: int
) -> float | None:
    """Return the minutes that one of `waiting` runs gets; None: unlimited.

    Args:
        left: Minutes until the suite's time is over; None: it has no end.
        own: Most that one run may have; None: unlimited.
        waiting: Runs that have not begun, this one included.
        workers: Runs at once.
    """
    rounds = math.ceil(waiting / workers)
    return share(left, own, max(rounds, 1))
