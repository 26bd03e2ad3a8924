"""Checks that the times that a runner claims are possible.

A kernel on the CPU device lives in the runner's process and could forge its clock, so its warm
samples are compared with the supervisor's own clock. On a GPU the runner's host code is ours and
the samples are device events, whose memory a kernel might reach, so the median of the warm ones is
compared with the host's clock. On both, the cold median is compared with the warm times and with
what the device's memory can do.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from evaluator_svc.messages.locked import CandidateFailure
from evaluator_svc.policy.finding import check_result, rule_finding
from kernel_foundry.domain.check import Check, CheckKind, CheckResult
from kernel_foundry.domain.device import Peaks
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import Figure, Finding, FindingKind, Severity

_FLOOR_SHARE: Final = 0.5
"""Share of the moving time that is the floor: a copy as measured need not be the fastest."""
_COLD_SHARE: Final = 0.5
"""Share of the best warm time that a cold median must reach: no kernel is twice as fast without
its cache."""
_ACCOUNTED_SHARE: Final = 0.5
"""Share of the wall time, less the slack, that warm samples must account for."""
_SLACK_NS: Final = 30e6
"""Slack for messages, allocations of the loop and a pause by the scheduler."""
_EVENT_SHARE: Final = 0.7
"""Share of the host's time for a call, less its slack, that the call's events must account for."""
_EVENT_SLACK_NS: Final = 100e3
"""Slack for submission and for the wake-up of the waiting host, which take 5 to 10 µs."""


_LEAST_SAMPLES: Final = 8
"""Fewest samples for which the first is compared with the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockResult:
    """Checks, failure and suspicions of one workload's times."""

    checks: tuple[Check, ...]
    failure: CandidateFailure | None = None
    suspicions: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Samples of one measurement, and the supervisor's own times of it."""

    samples_ns: tuple[float, ...]
    warmup_count: int
    wall_ns: float
    """Between request and answer, on the supervisor's clock."""
    waiting_ns: float = 0.0
    """Time, within `wall_ns`, that the runner's threads together waited for a core."""
    busy_ns: float = 0.0
    """Time, within `wall_ns`, that the busiest of these threads had a core. The operating system
    counts both."""
    host_ns: tuple[float, ...] = ()
    """The host's time for each warm sample, where samples are spans of events; else empty."""
    poisoning_ns: float = 0.0
    """Least time to overwrite the outputs before each call, untimed."""

    @property
    def total_ns(self) -> float:
        """Sum of the samples."""
        return sum(self.samples_ns)

    @property
    def passed_ns(self) -> float:
        """Wall time less the runner's waits for a core, and at least its busiest thread's time."""
        return max(self.wall_ns - self.waiting_ns, min(self.busy_ns, self.wall_ns))

    @property
    def best_ns(self) -> float:
        """Shortest sample."""
        return min(self.samples_ns)


def joined_claim(claims: Sequence[Claim]) -> Claim:
    """Return the parts of one cold measurement as one claim; `host_ns` is left empty."""
    return Claim(
        samples_ns=tuple(s for c in claims for s in c.samples_ns),
        warmup_count=sum(c.warmup_count for c in claims),
        wall_ns=sum(c.wall_ns for c in claims),
        waiting_ns=sum(c.waiting_ns for c in claims),
        busy_ns=sum(c.busy_ns for c in claims),
        poisoning_ns=claims[-1].poisoning_ns,
    )


def adds_up(claim: Claim) -> bool:
    """Return whether a warm measurement's samples account for the time that passed.

    Between warm samples only outputs are overwritten, so a clock that runs slow leaves a gap. Time
    that the runner waited for a core does not count.
    """
    if claim.total_ns > claim.wall_ns:
        return False
    if claim.host_ns:
        host_ns = statistics.median(claim.host_ns)
        events_ns = statistics.median(claim.samples_ns)
        return events_ns >= _EVENT_SHARE * (host_ns - _EVENT_SLACK_NS)
    calls = len(claim.samples_ns) + claim.warmup_count
    claimed_ns = claim.total_ns * calls / len(claim.samples_ns)
    own_ns = calls * claim.poisoning_ns + _SLACK_NS
    return claimed_ns >= _ACCOUNTED_SHARE * (claim.passed_ns - own_ns)


def is_far_below(median_ns: float, warm: Claim) -> bool:
    """Return whether a median with emptied caches is far below the best warm time."""
    return median_ns < _COLD_SHARE * warm.best_ns


def floor_ns(
    traffic_bound_ns: float, peaks: Peaks, *, in_cache: bool, prepared_bytes: int = 0
) -> float:
    """Return the time below which no measurement on this device is believed.

    Args:
        traffic_bound_ns: What moving the compulsory bytes takes.
        peaks: The device's measured limits.
        in_cache: Whether the data may have stayed in the cache, so that they move at its speed.
        prepared_bytes: Bytes of weights that the plan prepares, untimed: they may be smaller then.
    """
    bandwidth = peaks.bandwidth_bytes_per_second
    moved_ns = max(traffic_bound_ns - 1e9 * prepared_bytes / bandwidth, 0.0)
    gain = max(peaks.cache_bandwidth_bytes_per_second / bandwidth, 1.0) if in_cache else 1.0
    return _FLOOR_SHARE * moved_ns / gain


def clocked(
    cold: Claim,
    warm: Claim,
    *,
    workload: str,
    median_ns: float,
    floor: float,
    believed_share: float = 1.0,
) -> ClockResult:
    """Return the checks `clock` and `physical_floor` with their failure or suspicions.

    Args:
        cold: Samples with emptied caches.
        warm: Samples with warm caches.
        workload: Their workload.
        median_ns: Median of the cold samples.
        floor: What `floor_ns` returns; a shorter time is impossible.
        believed_share: A time below this share of the time to move the compulsory bytes is suspect.
    """
    forged = _forged(cold, warm, median_ns, floor)
    finding = forged or _below_floor(median_ns, floor)
    first = _suspicion(cold) if _first_does_it_all(cold) else None
    is_beyond = median_ns < believed_share * floor / _FLOOR_SHARE
    beyond = _beyond(median_ns, floor / _FLOOR_SHARE) if is_beyond else None
    clock = CheckResult.FAILED if forged is not None else _result(first)
    physical = CheckResult.FAILED if median_ns < floor else _result(beyond)
    figures = {
        "cold_samples_ns": cold.total_ns,
        "cold_wall_ns": cold.wall_ns,
        "warm_samples_ns": warm.total_ns,
        "warm_wall_ns": warm.wall_ns,
        "first_sample_ns": cold.samples_ns[0],
        "median_ns": median_ns,
    }
    checks = (
        Check(
            kind=CheckKind.CLOCK,
            result=clock,
            workload=workload,
            figures=tuple(Figure(name=n, value=v) for n, v in figures.items()),
        ),
        Check(
            kind=CheckKind.PHYSICAL_FLOOR,
            result=physical,
            workload=workload,
            figures=_evidence(median_ns, floor),
        ),
    )
    if finding is not None:
        failure = CandidateFailure(outcome=EvaluationOutcome.REJECTED, findings=(finding,))
        return ClockResult(checks=checks, failure=failure)
    return ClockResult(checks=checks, suspicions=tuple(f for f in (first, beyond) if f))


def _result(suspicion: Finding | None) -> CheckResult:
    return CheckResult.PASSED if suspicion is None else check_result(suspicion)


def _first_does_it_all(cold: Claim) -> bool:
    """Return whether the first call takes longer than all others together."""
    first, count = cold.samples_ns[0], len(cold.samples_ns)
    return count >= _LEAST_SAMPLES and first > cold.total_ns - first


def _suspicion(cold: Claim) -> Finding:
    first = cold.samples_ns[0]
    return rule_finding(
        "timing.first_call",
        "the first timed call takes longer than all others together",
        evidence=(
            Figure(name="first_sample_ns", value=first),
            Figure(name="other_samples_ns", value=cold.total_ns - first),
        ),
    )


def _beyond(median_ns: float, moving_ns: float) -> Finding:
    return rule_finding(
        "timing.traffic_bound",
        f"a call takes {1e-6 * median_ns:.3g} ms, and moving the bytes that it needs takes "
        f"{1e-6 * moving_ns:.3g} ms",
        evidence=(
            Figure(name="median_ns", value=median_ns),
            Figure(name="moving_ns", value=moving_ns),
        ),
    )


def _forged(cold: Claim, warm: Claim, median_ns: float, floor: float) -> Finding | None:
    """Return how the claims contradict a clock or each other, or None."""
    if min(cold.best_ns, warm.best_ns) <= 0:
        return _finding("some samples are zero or negative", median_ns, floor)
    if cold.total_ns > cold.wall_ns:
        return _finding("the samples take longer than the time that passed", median_ns, floor)
    if not adds_up(warm):
        return _finding("the samples do not add up to the time that passed", median_ns, floor)
    if is_far_below(median_ns, warm):
        return _finding("times with emptied caches are far below warm ones", median_ns, floor)
    return None


def _below_floor(median_ns: float, floor: float) -> Finding | None:
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
        evidence=_evidence(median_ns, floor),
    )


def _evidence(median_ns: float, floor: float) -> tuple[Figure, ...]:
    return (
        Figure(name="median_ns", value=median_ns),
        Figure(name="floor_ns", value=floor),
    )
