"""Checks that the baselines of an admission still hold.

One baseline is timed briefly; if it drifted, all are measured again. Runs while the device's lock
is held exclusively.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from evaluator_svc.messages.measurement import MeasurementSettings
from kernel_foundry.domain.evaluation import Baseline, Timing
from kernel_foundry.domain.finding import Figure, Finding, FindingKind, Severity

_MARGIN: Final = 1.2
"""Times of one device differ by that much between two minutes for no reason that matters: clocks,
addresses. What intervals allow comes on top."""
_QUICK_SECONDS: Final = 0.1
_QUICK_SAMPLES: Final = (5, 30)
_SLOW_TO_START: Final = ("torch.compile",)
"""Compiled anew for each set of inputs: no quick look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineComparison:
    """What a look at one workload's baselines came to."""

    baselines: tuple[Baseline, ...]
    """Those that are true now."""
    drift: Finding | None = None
    """What changed; None when they hold."""


TimeBaselines = Callable[[MeasurementSettings, tuple[str, ...]], tuple[Baseline, ...]]
"""Times those that are named; one that does not work is left out."""


def check_baselines(
    time_baselines: TimeBaselines,
    known: tuple[Baseline, ...],
    *,
    seconds: float,
    flush_bytes: int,
) -> BaselineComparison:
    """Time one baseline for a moment; where it is no longer true, all of them as an admission does.

    Args:
        time_baselines: Times them on inputs of the workload.
        known: What the admission says; eager is among them.
        seconds: Longest measurement of each, as an admission takes.
        flush_bytes: Read between samples to empty the caches.
    """
    quick = min(
        (b for b in known if b.name not in _SLOW_TO_START), key=lambda b: b.timing.median_ns
    )
    settings = MeasurementSettings(
        seconds=_QUICK_SECONDS,
        min_samples=_QUICK_SAMPLES[0],
        max_samples=_QUICK_SAMPLES[1],
        flush_bytes=flush_bytes,
    )
    now = time_baselines(settings, (quick.name,))
    if not now or holds(quick.timing, now[0].timing):
        return BaselineComparison(baselines=known)
    whole = MeasurementSettings(seconds=seconds, flush_bytes=flush_bytes)
    measured = time_baselines(whole, tuple(b.name for b in known))
    return compared(known, measured)


def compared(known: tuple[Baseline, ...], measured: tuple[Baseline, ...]) -> BaselineComparison:
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
    return BaselineComparison(
        baselines=measured,
        drift=Finding(
            kind=FindingKind.BASELINE_DRIFT,
            severity=Severity.INFO,
            message=f"baselines drifted since they were measured, {changes}: measured again",
            evidence=tuple(
                Figure(name=f"{name}_{when}_ns", value=timing.median_ns)
                for name, before, now in drifted
                for when, timing in (("before", before), ("now", now))
            ),
        ),
    )


def holds(known: Timing, now: Timing) -> bool:
    """Return whether two measurements agree: their intervals, each widened by the margin."""
    (low, high), (low_now, high_now) = known.ci95_ns, now.ci95_ns
    return low_now <= _MARGIN * high and low <= _MARGIN * high_now
