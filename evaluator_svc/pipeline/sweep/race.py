"""Racing: configurations that cannot be the best any more are timed no further.

A configuration is dropped when the lower bound of its median is above the upper bound of the
incumbent's, or the one or two times that there are of it are all clearly above that. Times are
taken in `runner.py`.
"""

import dataclasses
from collections.abc import Sequence
from typing import Final

from evaluator_svc.messages.runner import TimeReply
from evaluator_svc.pipeline.timing.measurement import joined, timing_of
from kernel_foundry.domain.sweep import ConfigurationResult, ConfigurationTiming

SETTLED_HALF_WIDTH: Final = 0.01
"""Relative half-width of the 95 % interval at which a median is known well enough."""
SETTLED_SAMPLES: Final = 40
"""Samples after which a noisy median counts as settled too."""
FINALISTS: Final = 24
"""Most contenders that are timed on; the others keep the few samples they have."""
CLEARLY_SLOWER: Final = 1.5
"""One or two samples, whose interval includes nearly anything, decide if they are this many times
above the incumbent's upper bound."""
_FEW_SAMPLES: Final = 6
"""Fewest samples of a reliable interval: with fewer it may be narrow by chance."""


class Race:
    """The correct configurations that may still be the best, by number."""

    def __init__(self) -> None:
        self._contenders: dict[int, ConfigurationResult] = {}

    @property
    def incumbent(self) -> ConfigurationResult | None:
        """The contender with the lowest median, or None."""
        return min(self._contenders.values(), key=_median, default=None)

    @property
    def incumbent_upper_ns(self) -> tuple[float, ...]:
        """The incumbent's upper bound on each timed workload; empty without one."""
        best = self.incumbent
        return () if best is None else tuple(t.timing.ci95_ns[1] for t in best.timings)

    def enter(
        self, number: int, result: ConfigurationResult, *, drops: bool = True
    ) -> dict[int, ConfigurationResult]:
        """Add a contender, or replace its times; return those that are out of the race now.

        Args:
            number: Of the configuration.
            result: What is known of it.
            drops: Whether anybody is dropped now; False when more samples follow at once.
        """
        self._contenders[number] = result
        if not drops:
            return {}
        best = self.incumbent
        assert best is not None, "there is a contender"
        limit_ns = _bounds(best)[1]
        out = {
            number: contender
            for number, contender in self._contenders.items()
            if contender is not best and _is_behind(contender, limit_ns)
        }
        for loser in out:
            del self._contenders[loser]
        return {n: dataclasses.replace(r, raced_out=True) for n, r in out.items()}

    def would_lead(self, result: ConfigurationResult) -> bool:
        """Return whether `result` would be the incumbent."""
        best = self.incumbent
        return best is None or _median(result) < _median(best)

    def withdraw(self, number: int) -> None:
        """Take a contender out: it failed after all."""
        self._contenders.pop(number, None)

    def result(self, number: int) -> ConfigurationResult | None:
        """Return a contender's result so far, or None when it is out."""
        return self._contenders.get(number)

    def unsettled(self) -> list[int]:
        """Return the finalists that need more samples, best first; none when one is left."""
        if len(self._contenders) < 2:
            return []
        ranked = sorted(self._contenders, key=lambda n: _median(self._contenders[n]))
        return [n for n in ranked[:FINALISTS] if not _is_settled(self._contenders[n])]

    def contenders(self) -> list[ConfigurationResult]:
        """Return the remaining configurations, best first."""
        return sorted(self._contenders.values(), key=_median)


def with_block(
    timings: Sequence[ConfigurationTiming], block: Sequence[TimeReply]
) -> tuple[ConfigurationTiming, ...]:
    """Return the timings with another block of samples on each workload."""
    return tuple(
        dataclasses.replace(old, timing=joined((old.timing, timing_of(new, is_cold=True))))
        for old, new in zip(timings, block, strict=True)
    )


def _median(result: ConfigurationResult) -> float:
    median_ns = result.median_ns
    assert median_ns is not None, "a contender is timed"
    return median_ns


def _bounds(result: ConfigurationResult) -> tuple[float, float]:
    bounds = result.bounds_ns
    assert bounds is not None, "a contender is timed"
    return bounds


def _is_behind(result: ConfigurationResult, limit_ns: float) -> bool:
    least_seen_ns = result.least_seen_ns
    assert least_seen_ns is not None, "a contender is timed"
    return _bounds(result)[0] > limit_ns or least_seen_ns > CLEARLY_SLOWER * limit_ns


def _is_settled(result: ConfigurationResult) -> bool:
    counts = [len(t.timing.samples_ns) for t in result.timings]
    if min(counts) >= SETTLED_SAMPLES:
        return True
    lower, upper = _bounds(result)
    return min(counts) >= _FEW_SAMPLES and upper - lower <= 2 * SETTLED_HALF_WIDTH * _median(result)
