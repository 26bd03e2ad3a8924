"""The median of samples and its 95 % confidence interval."""

import math
from typing import Final

Z95: Final = 1.959963984540054
"""Quantile .975 of the normal distribution: half a 95 % interval, in standard errors."""

FEWEST_RANKED: Final = 6
"""Fewer samples have no ranks that are 95 % apart."""

_T95: Final = {1: math.inf, 2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}
"""Quantile .975 of Student's t for so many samples."""

_FURTHEST: Final = 10.0
"""How many times beyond the samples a bound of few of them lies at most. Of one sample, nothing is
known of how they scatter."""


def median_interval(samples_ns: tuple[float, ...]) -> tuple[float, tuple[float, float]]:
    """Return (median, (lower, upper)) of at least one sample, in the samples' unit.

    The bounds are order statistics (normal approximation of the binomial), so no shape of the
    distribution is assumed. Those of fewer than six samples are Student's around the mean, and
    hold all samples.
    """
    ordered = sorted(samples_ns)
    count = len(ordered)
    middle = count // 2
    median = ordered[middle] if count % 2 else 0.5 * (ordered[middle - 1] + ordered[middle])
    if count < FEWEST_RANKED:
        return median, _few(ordered)
    reach = 0.5 * Z95 * math.sqrt(count)
    lower = max(math.floor(0.5 * count - reach), 0)
    upper = min(math.ceil(0.5 * count + reach), count - 1)
    return median, (ordered[lower], ordered[upper])


def _few(ordered: list[float]) -> tuple[float, float]:
    # No logarithms or powers: others check the bounds where a library rounds these another way.
    least, most, count = ordered[0], ordered[-1], len(ordered)
    mean = math.fsum(ordered) / count
    squares = math.fsum((sample - mean) * (sample - mean) for sample in ordered)
    variance = squares / max(count - 1, 1)
    reach = _T95[count] * math.sqrt(variance / count) if count > 1 else math.inf
    return (
        max(min(least, mean - reach), least / _FURTHEST),
        min(max(most, mean + reach), most * _FURTHEST),
    )
