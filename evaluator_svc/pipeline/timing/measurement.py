"""One measurement by a runner, and what several of them are together.

Evaluations and sweeps take times this way. Which plans they follow is in `workload_timing.py` and
`../sweep/runner.py`.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Final

from evaluator_svc.messages.draw import Draw
from evaluator_svc.messages.locked import CandidateFailure
from evaluator_svc.messages.runner import PoolReady, PoolRequest, TimeReply, TimeRequest
from evaluator_svc.processes.ask_candidate import ask_candidate
from evaluator_svc.processes.process import ChildProcess
from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.evaluation import Timing
from kernel_foundry.domain.median import median_interval

_KEPT_CALLS: Final = 2
"""Timed calls whose outputs are verified afterwards; one where a draw has room for one."""
_POOL_SECONDS: Final = 60.0
_SLOW_SHARE: Final = 4.0
"""A measurement is late after this multiple of its budget: slow calls have three times it."""


def keep_count(draw: Draw) -> int:
    """Return how many timed calls of a measurement are kept."""
    return min(_KEPT_CALLS, max(draw.slot_count - 1, 1))


def fill_pool(
    process: ChildProcess,
    workload: str,
    device: DeviceSpec,
    *,
    limit_bytes: int,
    number: int = 0,
) -> PoolReady | CandidateFailure:
    """Make the runner allocate its timed input sets; `number` is the configuration's."""
    request = PoolRequest(
        workload=workload, wanted_bytes=device.flush_bytes, limit_bytes=limit_bytes, number=number
    )
    return ask_candidate(
        process, request, PoolReady, seconds=_POOL_SECONDS, doing="filling the pool"
    )


def measure(
    process: ChildProcess,
    request: TimeRequest,
    descriptors: tuple[int, ...],
    *,
    run_seconds: float,
) -> TimeReply | CandidateFailure:
    """Take one measurement on a filled pool.

    Args:
        process: The runner.
        request: What is measured, and how.
        descriptors: As `TimeRequest` says.
        run_seconds: What it may take beyond its own budget before it is ended.
    """
    return ask_candidate(
        process,
        request,
        TimeReply,
        seconds=_SLOW_SHARE * request.settings.seconds + run_seconds,
        doing="timing the kernels",
        descriptors=descriptors,
    )


def has_times(timed: TimeReply) -> bool:
    """Return whether a runner gave samples, and none that cannot be a time."""
    return bool(timed.samples_ns) and all(math.isfinite(t) and t >= 0 for t in timed.samples_ns)


def timing_of(timed: TimeReply, *, is_cold: bool) -> Timing:
    """Return one measurement as a timing."""
    median_ns, interval = median_interval(timed.samples_ns)
    return Timing(
        samples_ns=timed.samples_ns,
        device_ns=timed.device_ns,
        host_ns=timed.host_ns,
        median_ns=median_ns,
        ci95_ns=interval,
        stop_reason=timed.stop_reason,
        is_cold=is_cold,
        warmup_count=timed.warmup_count,
        discarded_count=timed.discarded_count,
        clocks=timed.clocks,
    )


def joined(timings: Sequence[Timing]) -> Timing:
    """Return several measurements as one, which stopped as the last of them did."""
    samples = tuple(s for t in timings for s in t.samples_ns)
    median_ns, interval = median_interval(samples)
    return dataclasses.replace(
        timings[-1],
        samples_ns=samples,
        device_ns=tuple(s for t in timings for s in t.device_ns),
        host_ns=tuple(s for t in timings for s in t.host_ns),
        clocks=tuple(c for t in timings for c in t.clocks),
        median_ns=median_ns,
        ci95_ns=interval,
        warmup_count=sum(t.warmup_count for t in timings),
        discarded_count=sum(t.discarded_count for t in timings),
    )
