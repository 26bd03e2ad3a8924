"""Intervals of statistics over seeds or tasks, by resampling whole ones.

Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), ch. 13 (percentile
interval); Wilson 1927 (interval of a share).
"""

import math
from typing import Final

import numpy as np

from kernel_foundry.domain.median import Z95
from kernel_foundry.sdk.statistics.estimate import Estimate

RESAMPLES: Final = 2000
"""Enough for the 2.5 % quantile to repeat within a few per cent of the interval's width."""

_QUANTILES: Final = (0.025, 0.975)


class Bootstrap:
    """Resamples of units (seeds, tasks), the same for every statistic, so that pairs stay paired.

    Args:
        count: Units.
        seed: Of the resampling itself.
    """

    def __init__(self, count: int, *, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self._picked = rng.integers(count, size=(RESAMPLES, count))
        rows = np.arange(RESAMPLES)[:, None]
        weights = np.zeros((RESAMPLES, count))
        np.add.at(weights, (np.broadcast_to(rows, self._picked.shape), self._picked), 1 / count)
        self._weights = weights

    def resampled_means(self, values: np.ndarray) -> np.ndarray:
        """Return `(resample, …)` means of `(unit, …)` values."""
        means: np.ndarray = self._weights @ values
        return means

    def mean(self, values: np.ndarray) -> Estimate:
        """Return the mean of `(unit,)` values."""
        return estimate(float(values.mean()), self.resampled_means(values))

    def median(self, values: np.ndarray) -> Estimate:
        """Return the median of `(unit,)` values."""
        return estimate(float(np.median(values)), np.median(values[self._picked], axis=1))

    def mean_curve(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (mean, low, high) over units of `(unit, evaluation)` values, point by point."""
        low, high = np.quantile(self.resampled_means(values), _QUANTILES, axis=0)
        return values.mean(axis=0), low, high


def estimate(value: float, resampled: np.ndarray) -> Estimate:
    """Return `value` with the percentile interval of its `(resample,)` replications."""
    low, high = np.quantile(resampled, _QUANTILES)
    return Estimate(value=value, low=float(low), high=float(high))


def share(hits: float, count: float) -> Estimate:
    """Return the share `hits / count` with Wilson's interval, which holds at 0 and 1 too.

    Hits may be sums of shares, as of a task's repeats: the interval is wider than need be then.
    """
    centre = (hits + Z95**2 / 2) / (count + Z95**2)
    variance = hits * (count - hits) / count + Z95**2 / 4
    reach = Z95 * math.sqrt(variance) / (count + Z95**2)
    return Estimate(value=hits / count, low=max(centre - reach, 0.0), high=min(centre + reach, 1.0))
