"""The median of samples and its 95 % confidence interval."""

import math
from typing import Final

Z95: Final = 1.959963984540054
"""Quantile .975 of the normal distribution: half a 95 % interval, in standard errors."""


def median_interval(samples_ns: tuple[float, ...]) -> tuple[float, tuple[float, float]]:
    """Return (median, (lower, upper)) of at least one sample, in the samples' unit.

    The bounds are order statistics (normal approximation of the binomial), so no shape of the
    distribution is assumed; with few samples they are the extremes.
    """
    ordered = sorted(samples_ns)
    count = len(ordered)
    middle = count // 2
    median = ordered[middle] if count % 2 else 0.5 * (ordered[middle - 1] + ordered[middle])
    reach = 0.5 * Z95 * math.sqrt(count)
    lower = max(math.floor(0.5 * count - reach), 0)
    upper = min(math.ceil(0.5 * count + reach), count - 1)
    return median, (ordered[lower], ordered[upper])
