"""Speed-ups and their 95 % intervals, from the medians of times and the intervals of these.

Source of the interval: G. Y. Zou and A. Donner, Construction of confidence limits about effect
measures: a general approach, Statistics in Medicine 27 (2008), 1693-1702 (MOVER), applied to a mean
of differences of logarithms.
"""

import math
from collections.abc import Sequence
from typing import Final

TimeBounds = tuple[float, float, float]
"""(lower bound, median, upper bound) of a time, in ns."""

TimePair = tuple[TimeBounds, TimeBounds]
"""(slow, fast): a baseline and a candidate on one workload."""

_LEAST_NS: Final = 1e-9
"""A clock may say 0, which has no logarithm."""

_MOST_NS: Final = 1e18
"""Thirty years. With both ends no ratio of times overflows, whatever a stored verdict says."""


def mean_speedup(pairs: Sequence[TimePair]) -> float:
    """Return the geometric mean over `pairs`, at least one, of slow over fast, medians."""
    product = math.prod(min(slow[1], _MOST_NS) / max(fast[1], _LEAST_NS) for slow, fast in pairs)
    return product ** (1.0 / len(pairs))


def mean_speedup_interval(pairs: Sequence[TimePair]) -> tuple[float, float]:
    """Return the 95 % interval (lower, upper) of `mean_speedup`, dimensionless.

    lower = mean * exp(-sqrt(sum of the squared distances, in logarithms, of each slow median to its
    lower and of each fast median to its upper bound) / count); upper alike, with the bounds
    exchanged and +. Times are taken to be independent; what changes between two measurements, such
    as other work on the host, is no part of it.
    """
    below, above = 0.0, 0.0
    for slow, fast in pairs:
        slow_low, slow_middle, slow_high = _logarithms(slow)
        fast_low, fast_middle, fast_high = _logarithms(fast)
        below += (slow_middle - slow_low) ** 2 + (fast_high - fast_middle) ** 2
        above += (slow_high - slow_middle) ** 2 + (fast_middle - fast_low) ** 2
    mean, count = mean_speedup(pairs), len(pairs)
    return mean * math.exp(-math.sqrt(below) / count), mean * math.exp(math.sqrt(above) / count)


def fastest(times: Sequence[TimeBounds]) -> TimeBounds:
    """Return the bounds of the least of several times, whichever it truly is.

    Where all intervals hold, the least lies between the least lower and the least upper bound.
    """
    lower, median, upper = (min(bounds) for bounds in zip(*times, strict=True))
    return lower, median, upper


def _logarithms(bounds: TimeBounds) -> tuple[float, float, float]:
    lower, median, upper = (math.log(min(max(bound, _LEAST_NS), _MOST_NS)) for bound in bounds)
    return lower, median, upper
