"""Checks that the baselines of an admission still hold.

One baseline is timed briefly; if it drifted, all are measured again. While other programs have the
host's cores, what they made slower proves nothing: the faster time counts. Runs while the device's
lock is held exclusively.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from evaluator_svc.baseline_names import COMPILED
from evaluator_svc.messages.measurement import MeasurementSettings
from kernel_foundry.domain.evaluation import Baseline, Timing
from kernel_foundry.domain.finding import Figure, Finding, FindingKind, Severity

_MARGIN: Final = 1.2
"""Times of one device differ by that much between two minutes for no reason that matters: clocks,
addresses. What intervals allow comes on top."""
_QUICK_SECONDS: Final = 0.1
_QUICK_SAMPLES: Final = (5, 30)


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineComparison:
    """The result of checking one workload's baselines."""

    baselines: tuple[Baseline, ...]
    """Those to rely on."""
    drift: Finding | None = None
    """The change; None if they hold."""


TimeBaselines = Callable[[MeasurementSettings, tuple[str, ...]], tuple[Baseline, ...]]
"""Times those that are named; one that does not work is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineClock:
    """How the baselines of a workload are timed."""

    time: TimeBaselines
    """On inputs of the workload."""
    seconds: float
    """Longest measurement of each, as an admission takes."""
    flush_bytes: int
    """Read between samples to empty the caches."""
    is_loaded: Callable[[], bool]
    """Whether other programs have had the cores until now."""

    def time_whole(self, known: tuple[Baseline, ...]) -> tuple[Baseline, ...]:
        """Return the times of all that are known, as an admission takes them."""
        whole = MeasurementSettings(seconds=self.seconds, flush_bytes=self.flush_bytes)
        return self.time(whole, tuple(b.name for b in known))


def check_baselines(clock: BaselineClock, known: tuple[Baseline, ...]) -> BaselineComparison:
    """Time one baseline for a moment; where it is no longer true, all of them as an admission does.

    Args:
        clock: Times them.
        known: What the admission says; eager is among them.
    """
    quick = min((b for b in known if b.name not in COMPILED), key=lambda b: b.timing.median_ns)
    settings = MeasurementSettings(
        seconds=_QUICK_SECONDS,
        min_samples=_QUICK_SAMPLES[0],
        max_samples=_QUICK_SAMPLES[1],
        flush_bytes=clock.flush_bytes,
    )
    now = clock.time(settings, (quick.name,))
    if not now or holds(quick.timing, now[0].timing):
        return BaselineComparison(baselines=known)
    return compared(known, clock.time_whole(known), is_loaded=clock.is_loaded())


def measured_again(clock: BaselineClock, known: tuple[Baseline, ...]) -> BaselineComparison:
    """Time all baselines anew, since `known` are of a loaded moment: other times are no drift."""
    measured = clock.time_whole(known)
    if clock.is_loaded():
        measured = _faster(known, measured)
    return BaselineComparison(baselines=measured or known)


def compared(
    known: tuple[Baseline, ...], measured: tuple[Baseline, ...], *, is_loaded: bool
) -> BaselineComparison:
    """Return which baselines to rely on, where all of them were measured again."""
    by_name = {b.name: b.timing for b in measured}
    drifted = [
        (b.name, b.timing, by_name[b.name])
        for b in known
        if b.name in by_name and not holds(b.timing, by_name[b.name])
    ]
    if not drifted:
        return BaselineComparison(baselines=known)  # what was seen at first has passed
    changes = ", ".join(
        f"{name} from {1e-6 * before.median_ns:.3g} to {1e-6 * now.median_ns:.3g} ms"
        for name, before, now in drifted
    )
    result = "measured again"
    if is_loaded:
        measured = _faster(known, measured)
        result = "other programs have the cores, so the faster time of each counts"
    return BaselineComparison(
        baselines=measured,
        drift=Finding(
            kind=FindingKind.BASELINE_DRIFT,
            severity=Severity.INFO,
            message=f"baselines drifted since they were measured, {changes}: {result}",
            evidence=tuple(
                Figure(name=f"{name}_{when}_ns", value=timing.median_ns)
                for name, before, now in drifted
                for when, timing in (("before", before), ("now", now))
            ),
        ),
    )


def _faster(known: tuple[Baseline, ...], now: tuple[Baseline, ...]) -> tuple[Baseline, ...]:
    earlier = {b.name: b for b in known}
    return tuple(min(earlier[b.name], b, key=lambda each: each.timing.median_ns) for b in now)


def holds(known: Timing, now: Timing) -> bool:
    """Return whether two measurements agree: their intervals, each widened by the margin."""
    (low, high), (low_now, high_now) = known.seen_ns, now.seen_ns
    return low_now <= _MARGIN * high and low <= _MARGIN * high_now
