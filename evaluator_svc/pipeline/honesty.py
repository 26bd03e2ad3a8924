"""Whether the times that a runner claims are possible.

A kernel on the CPU device lives in the runner's process and could forge its clock, so its
samples are held against the supervisor's own clock and against what the device's memory can do.
On a GPU the runner's host code is ours and the samples are device events, whose memory a kernel
might reach, so they are held against the host's clock.
Knows nothing of how times are taken.
"""

import statistics
from dataclasses import dataclass
from typing import Final

from kernel_foundry.domain.device import Peaks
from kernel_foundry.domain.finding import Evidence, Finding, FindingKind, Severity

_FLOOR_SHARE: Final = 0.5
"""Of the floor: a copy as measured need not be the fastest way through memory."""
_COLD_SHARE: Final = 0.5
"""Of the best warm time: emptied caches make nothing twice as fast."""
_ACCOUNTED_SHARE: Final = 0.5
"""Of the wall time that warm samples must account for, once the slack is taken off."""
_SLACK_NS: Final = 30e6
"""Messages, allocation of the loop and a pause by the scheduler."""
_EVENT_SHARE: Final = 0.7
"""Of the host's time for a call that its events must account for, once the slack is taken off."""
_EVENT_SLACK_NS: Final = 100e3
"""Submission, and the wake-up of the host that waits: 5 to 10 µs as measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Samples of one measurement, and what the supervisor saw."""

    samples_ns: tuple[float, ...]
    warmup_count: int
    wall_ns: float
    """Between request and answer, on the supervisor's clock."""
    host_ns: tuple[float, ...] = ()
    """The host's clock for each sample that is a span of events; else empty."""

    @property
    def total_ns(self) -> float:
        """Sum of the samples."""
        return sum(self.samples_ns)

    @property
    def best_ns(self) -> float:
        """Shortest sample."""
        return min(self.samples_ns)


def adds_up(claim: Claim) -> bool:
    """Return whether a warm measurement's samples account for the time that passed.

    Warm samples follow each other with nothing between, so a clock that runs slow leaves a gap.
    """
    if claim.total_ns > claim.wall_ns:
        return False
    if claim.host_ns:
        host_ns = statistics.median(claim.host_ns)
        events_ns = statistics.median(claim.samples_ns)
        return events_ns >= _EVENT_SHARE * (host_ns - _EVENT_SLACK_NS)
    calls = len(claim.samples_ns) + claim.warmup_count
    claimed_ns = claim.total_ns * calls / len(claim.samples_ns)
    return claimed_ns >= _ACCOUNTED_SHARE * (claim.wall_ns - _SLACK_NS)


def floor_ns(minimal_bytes: int, peaks: Peaks, *, in_cache: bool) -> float:
    """Return the time below which nothing can move `minimal_bytes` on this device."""
    bandwidth = peaks.bandwidth_bytes_per_second
    if in_cache:
        bandwidth = max(bandwidth, peaks.cache_bandwidth_bytes_per_second)
    return _FLOOR_SHARE * 1e9 * minimal_bytes / bandwidth if bandwidth > 0 else 0.0


def impossible(cold: Claim, warm: Claim, *, median_ns: float, floor: float) -> Finding | None:
    """Return why the claims cannot be true, or None."""
    if cold.total_ns > cold.wall_ns or min(cold.best_ns, warm.best_ns) <= 0:
        return _finding("the samples take longer than the time that passed", median_ns, floor)
    if not adds_up(warm):
        return _finding("the samples do not add up to the time that passed", median_ns, floor)
    if median_ns < _COLD_SHARE * warm.best_ns:
        return _finding("times with emptied caches are far below warm ones", median_ns, floor)
    if median_ns < floor:
        return _finding(
            "the time is below what the device's memory bandwidth allows", median_ns, floor
        )
    return None


def _finding(message: str, median_ns: float, floor: float) -> Finding:
    return Finding(
        kind=FindingKind.IMPOSSIBLE_TIME,
        severity=Severity.ERROR,
        message=message,
        evidence=(
            Evidence(name="median_ns", value=median_ns),
            Evidence(name="floor_ns", value=floor),
        ),
    )
