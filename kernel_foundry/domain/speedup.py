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


def mean_speedup(pairs: Sequence[TimePair], weights: Sequence[float] = ()) -> float:
    """Return the geometric mean over `pairs`, at least one, of slow over fast, medians.

    Args:
        pairs: A slow and a fast time of each workload.
        weights: How much each counts, above 0; empty: all alike.
    """
    ratios = [min(slow[1], _MOST_NS) / max(fast[1], _LEAST_NS) for slow, fast in pairs]
    return weighted_mean(ratios, weights)


def mean_speedup_interval(
    pairs: Sequence[TimePair], weights: Sequence[float] = ()
) -> tuple[float, float]:
    """Return the 95 % interval (lower, upper) of `mean_speedup`, dimensionless.

    lower = mean * exp(-sqrt(sum of the squared distances, in logarithms, of each slow median to its
    lower and of each fast median to its upper bound, each times its share of the weights)); upper
    alike, with the bounds exchanged and +. Times are taken to be independent; what changes between
    two measurements, such as other work on the host, is no part of it.
    """
    below, above = 0.0, 0.0
    for (slow, fast), share in zip(pairs, _shares(weights, len(pairs)), strict=True):
        slow_low, slow_middle, slow_high = _logarithms(slow)
        fast_low, fast_middle, fast_high = _logarithms(fast)
        below += share**2 * ((slow_middle - slow_low) ** 2 + (fast_high - fast_middle) ** 2)
        above += share**2 * ((slow_high - slow_middle) ** 2 + (fast_middle - fast_low) ** 2)
    mean = mean_speedup(pairs, weights)
    return mean * math.exp(-math.sqrt(below)), mean * math.exp(math.sqrt(above))


def weighted_mean(values: Sequence[float], weights: Sequence[float] = ()) -> float:
    """Return the geometric mean of `values`, at least one and all above 0.

    Args:
        values: What is averaged.
        weights: How much each counts, above 0; empty: all alike.
    """
    if not weights or all(weight == weights[0] for weight in weights):
        return math.exp(math.fsum(map(math.log, values)) / len(values))
    shares = _shares(weights, len(values))
    return math.exp(math.fsum(s * math.log(v) for v, s in zip(values, shares, strict=True)))


def fastest(times: Sequence[TimeBounds]) -> TimeBounds:
    """Return the bounds of the least of several times, whichever it truly is.

    Where all intervals hold, the least lies between the least lower and the least upper bound.
    """
    lower, median, upper = (min(bounds) for bounds in zip(*times, strict=True))
    return lower, median, upper


def _shares(weights: Sequence[float], count: int) -> Sequence[float]:
    whole = math.fsum(weights)
    return [weight / whole for weight in weights] if weights else [1.0 / count] * count


def _logarithms(bounds: TimeBounds) -> tuple[float, float, float]:
    lower, median, upper = (math.log(min(max(bound, _LEAST_NS), _MOST_NS)) for bound in bounds)
    return lower, median, upper
