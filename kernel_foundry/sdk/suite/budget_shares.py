"""What each run of a suite gets of the suite's budget.

A run that begins gets an equal share, among the runs that wait, of what is left, and never more
than a run may have by itself. What a run did not use is left again when it ends, so the later ones
get more. When none waits any more, what is left goes to runs that their share ended, by what they
may still gain: nothing for one at its traffic bound. At no time do the shares of runs that are
under way and what was used exceed the whole.
"""

import math
from typing import Final

_LEAST_BOUND_SHARE: Final = 0.05
"""A run that is further from its bound, or has solved nothing, may gain a factor of twenty."""

_LEAST_MORE: Final = 0.1
"""Of what a run was given first: less does not pay for going on with it."""


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


def possible_gain(bound_share: float) -> float:
    """Return what a run may still gain: the logarithm of the speed-up that its bound leaves.

    Args:
        bound_share: Traffic bound over the time of its best kernel; 0: it has none.
    """
    return -math.log(min(max(bound_share, _LEAST_BOUND_SHARE), 1.0))


def more(
    left: float | None, own: float | None, *, first: float | None, used: float, part: float
) -> float | None:
    """Return what a run that goes on may use in all; None: unlimited.

    Args:
        left: Of the suite's budget; None: unlimited.
        own: Most that one run may have; None: unlimited.
        first: What it was given first; None: unlimited.
        used: What of this it used.
        part: Of what is left, from 0 to 1: what it may gain over what all may gain.
    """
    if left is None or first is None:
        return own
    given = used + part * left
    return given if own is None else min(own, given)


def is_worth_going_on(given: float | None, *, first: float | None, used: float) -> bool:
    """Return whether a run that used `used` of `first` has something to do with `given` in all."""
    return given is None or first is None or given - used >= _LEAST_MORE * first
