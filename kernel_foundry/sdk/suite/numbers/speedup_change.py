"""Whether one task's kernel became faster: the ratio of two speed-ups and its interval.

A speed-up is over the baseline that was measured beside the kernel, so the ratio holds where the
two were measured at different times. With one run on each side the interval holds the noise of
measuring alone: two searches of the same kind differ by more. With several runs on both sides it
is over runs, and holds that as well.
Sources: Zou and Donner 2008 (MOVER, a difference of two estimates) for single runs; Welch 1947 for
several, on logarithms.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from kernel_foundry.domain.median import Z95
from kernel_foundry.sdk.statistics.estimate import Estimate

_T95: Final = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""Quantile .975 of Student's t for 1, 2, … degrees of freedom."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredSpeedup:
    """A speed-up and the 95 % interval of measuring it."""

    value: float
    low: float
    high: float


def speedup_change(before: Sequence[MeasuredSpeedup], after: Sequence[MeasuredSpeedup]) -> Estimate:
    """Return the ratio after over before, of geometric means, with its 95 % interval.

    Args:
        before: Of each correct run of a task, at least one.
        after: The same of the other suite.
    """
    old, new = _logarithms(before), _logarithms(after)
    centre = float(new.mean() - old.mean())
    if len(old) > 1 and len(new) > 1:
        below = above = _welch_reach(old, new)
    else:
        below = math.hypot(_reach(after, -1), _reach(before, +1))
        above = math.hypot(_reach(after, +1), _reach(before, -1))
    return Estimate(
        value=math.exp(centre), low=math.exp(centre - below), high=math.exp(centre + above)
    )


def mean_speedup(speedups: Sequence[MeasuredSpeedup]) -> Estimate:
    """Return the geometric mean of a task's correct runs with its 95 % interval.

    Of one run the interval is that of measuring, of several it is over runs (Student's t).
    """
    logarithms = _logarithms(speedups)
    centre = float(logarithms.mean())
    if len(speedups) > 1:
        error = float(np.std(logarithms, ddof=1)) / math.sqrt(len(speedups))
        below = above = t95(len(speedups) - 1) * error
    else:
        below, above = _reach(speedups, -1), _reach(speedups, +1)
    return Estimate(
        value=math.exp(centre), low=math.exp(centre - below), high=math.exp(centre + above)
    )


def _logarithms(speedups: Sequence[MeasuredSpeedup]) -> np.ndarray:
    return np.log([one.value for one in speedups])


def _reach(speedups: Sequence[MeasuredSpeedup], side: int) -> float:
    """From the mean logarithm to its lower (-1) or upper (+1) bound."""
    bounds = [one.low if side < 0 else one.high for one in speedups]
    apart = np.log(bounds) - _logarithms(speedups)
    return float(np.sqrt(np.sum(apart**2)) / len(speedups))


def _welch_reach(old: np.ndarray, new: np.ndarray) -> float:
    parts = [float(np.var(values, ddof=1)) / len(values) for values in (old, new)]
    total = sum(parts)
    if total == 0.0:
        return 0.0
    freedom = total**2 / sum(
        part**2 / (len(values) - 1) for part, values in zip(parts, (old, new), strict=True)
    )
    return t95(freedom) * math.sqrt(total)


def t95(freedom: float) -> float:
    """Return the quantile .975 of Student's t, rounded up to fewer whole degrees of freedom.

    Source of the series beyond the table: Abramowitz and Stegun, 26.7.5.
    """
    whole = max(math.floor(freedom), 1)
    if whole <= len(_T95):
        return _T95[whole - 1]
    z = Z95
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
