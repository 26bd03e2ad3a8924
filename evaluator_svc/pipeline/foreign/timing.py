"""Times one workload of a foreign kernel, call by call from outside.

Before each call the inputs get new values by a key of its own, outputs of the call before are
overwritten and caches emptied. Whether a call is verified is decided when it has returned. The
process measures with the loop that measures baselines. At last the supervisor's clock sees calls
from the key of their inputs to the arrival of their outputs, which are verified, and the same of a
kernel that does nothing.
"""

import secrets
import time
from dataclasses import dataclass
from typing import Final

from evaluator_svc.languages import backend_of
from evaluator_svc.messages.draw import Draw
from evaluator_svc.messages.foreign import ForeignTimeRequest, ForeignTimes
from evaluator_svc.messages.judge import KeptClaim, KeptVerdict
from evaluator_svc.messages.locked import CandidateFailure
from evaluator_svc.messages.measurement import KeptOutput, MeasurementSettings
from evaluator_svc.pipeline.foreign.empty_kernel import EmptyKernel
from evaluator_svc.pipeline.foreign.outside_clock import (
    PAUSES_SECONDS,
    Orders,
    OutsideClock,
    failure_of_clock,
    take_outputs,
)
from evaluator_svc.pipeline.runner_calls import failure_of
from evaluator_svc.pipeline.timing.time_checks import (
    Claim,
    ClockResult,
    adds_up,
    clocked,
    floor_ns,
    is_far_below,
    joined_claim,
)
from evaluator_svc.pipeline.timing.watched_call import watched
from evaluator_svc.processes.ask_candidate import ask_candidate
from evaluator_svc.processes.judge_client import JudgeClient
from evaluator_svc.processes.process import ChildProcess
from kernel_foundry.domain.admission import WorkloadAdmission
from kernel_foundry.domain.check import Check
from kernel_foundry.domain.device import DeviceSpec, Peaks
from kernel_foundry.domain.evaluation import StopReason, Timing
from kernel_foundry.domain.finding import Finding
from kernel_foundry.domain.median import median_interval

_WARM_CALLS: Final = 50
_SAMPLES_THAT_SCATTER: Final = 3
_SLOW_SHARE: Final = 3.0
"""Multiple of the budget for so many samples."""
_VERIFIED: Final = 3
"""The first calls all; after that call n with a chance of this over n."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignTimings:
    """One workload's times, and what came of verifying its calls."""

    timing: Timing
    warm_timing: Timing
    verdicts: tuple[KeptVerdict, ...]
    checks: tuple[Check, ...]
    findings: tuple[Finding, ...]
    failure: CandidateFailure | None


class ForeignTimer:
    """Times one workload.

    Args:
        process: Has run the workload before.
        judge: Verifies.
        draw: The workload's inputs.
        empty: A kernel that does nothing, made ready for the same inputs.
        admission: What is known of the workload.
        device: Its device.
        peaks: The device's measured limits.
        settings: How long, how exactly, and what empties the caches.
        run_seconds: What a call may take.
        may_wait_for_threads: Whether to time calls with one thread as well.
    """

    def __init__(
        self,
        process: ChildProcess,
        judge: JudgeClient,
        *,
        draw: Draw,
        empty: EmptyKernel,
        admission: WorkloadAdmission,
        device: DeviceSpec,
        peaks: Peaks,
        settings: MeasurementSettings,
        run_seconds: float,
        may_wait_for_threads: bool,
    ) -> None:
        self._may_wait_for_threads = may_wait_for_threads
        self._one_thread = False
        self._process = process
        self._judge = judge
        self._draw = draw
        self._empty = empty
        self._admission = admission
        self._device = device
        self._peaks = peaks
        self._settings = settings
        self._run_seconds = run_seconds
        self._verdicts: list[KeptVerdict] = []

    def time(self) -> ForeignTimings | CandidateFailure:
        """Take cold times, then warm ones; ends with the first call that is wrong."""
        cold = self._cold()
        if isinstance(cold, CandidateFailure):
            return cold
        if self._may_wait_for_threads and not self._wrong_call:
            # As the baselines: the faster of both counts.
            self._one_thread = True
            alone = self._cold()
            if isinstance(alone, CandidateFailure):
                return alone
            self._one_thread = alone[0].median_ns < cold[0].median_ns
            cold = alone if self._one_thread else cold
        timing, claim = cold
        warm = self._warm(timing.median_ns)
        if isinstance(warm, CandidateFailure):
            return warm
        warm_times, warm_claim = warm
        kept = self._verify(key=0, call_count=_WARM_CALLS)
        if isinstance(kept, CandidateFailure):
            return kept
        of_clock = self._clocked(claim, warm_claim, timing)
        seen = self._seen_from_outside(claim.best_ns)
        if isinstance(seen, CandidateFailure):
            return seen
        wrong = self._wrong_call
        return ForeignTimings(
            timing=timing,
            warm_timing=_timing(warm_times, StopReason.MAX_SAMPLES, is_cold=False),
            verdicts=tuple(self._verdicts),
            checks=(*(c for v in self._verdicts for c in v.verdict.checks), *of_clock.checks, seen),
            findings=of_clock.suspicions,
            failure=wrong or of_clock.failure or failure_of_clock(seen),
        )

    def _cold(self) -> tuple[Timing, Claim] | CandidateFailure:
        settings = self._settings
        taken: list[tuple[ForeignTimes, Claim]] = []
        started = time.monotonic()
        while (reason := self._finished(taken, time.monotonic() - started)) is None:
            key = secrets.randbits(63)
            asked = self._ask(1, flush_bytes=settings.flush_bytes, key=key)
            if isinstance(asked, CandidateFailure):
                return asked
            taken.append(asked)
            if secrets.randbelow(len(taken)) < _VERIFIED:
                kept = self._verify(key=key, call_count=1)
                if isinstance(kept, CandidateFailure):
                    return kept
                if self._wrong_call:
                    reason = StopReason.BUDGET
                    break
        samples = ForeignTimes(
            samples_ns=tuple(t for times, _ in taken for t in times.samples_ns),
            device_ns=tuple(t for times, _ in taken for t in times.device_ns),
            host_ns=tuple(t for times, _ in taken for t in times.host_ns),
        )
        claim = joined_claim([claim for _, claim in taken])
        return _timing(samples, reason, is_cold=True), claim

    def _warm(self, cold_median_ns: float) -> tuple[ForeignTimes, Claim] | CandidateFailure:
        """Measure with warm caches; again where it does not fit the clock or the cold median."""
        for pause_seconds in PAUSES_SECONDS:
            time.sleep(pause_seconds)
            taken = self._ask(_WARM_CALLS, flush_bytes=0, key=0)
            if isinstance(taken, CandidateFailure):
                return taken
            if adds_up(taken[1]) and not is_far_below(cold_median_ns, taken[1]):
                break
        return taken

    def _finished(
        self, taken: list[tuple[ForeignTimes, Claim]], seconds: float
    ) -> StopReason | None:
        """Return why there are samples enough, as the loop of other candidates would."""
        settings, count = self._settings, len(taken)
        if count >= settings.max_samples:
            return StopReason.MAX_SAMPLES
        if count >= settings.min_samples and seconds >= settings.min_seconds:
            samples = tuple(times.samples_ns[0] for times, _ in taken)
            median_ns, (lower, upper) = median_interval(samples)
            if upper - lower <= 2.0 * settings.target_half_width * median_ns:
                return StopReason.CONVERGED
        # As native/src/stopping.cpp: slow calls have three samples.
        share = _SLOW_SHARE if count < _SAMPLES_THAT_SCATTER else 1.0
        if count and seconds >= share * settings.seconds:
            return StopReason.BUDGET
        return None

    def _ask(
        self, call_count: int, *, flush_bytes: int, key: int
    ) -> tuple[ForeignTimes, Claim] | CandidateFailure:
        """Return times of some calls, with what the supervisor's clock and Linux say of them."""
        request = self._request(call_count, flush_bytes=flush_bytes, key=key)
        seconds = self._run_seconds
        times, passed = watched(
            self._process,
            lambda: ask_candidate(
                self._process, request, ForeignTimes, seconds=seconds, doing="timing a call"
            ),
        )
        if isinstance(times, CandidateFailure):
            return times
        claim = Claim(
            samples_ns=times.samples_ns,
            host_ns=times.host_ns if self._is_timed_by_events else (),
            warmup_count=0,
            wall_ns=passed.wall_ns,
            waiting_ns=passed.waiting_ns,
            busy_ns=passed.busy_ns,
        )
        return times, claim

    def _request(self, call_count: int, *, flush_bytes: int, key: int) -> ForeignTimeRequest:
        return ForeignTimeRequest(
            workload=self._draw.workload,
            call_count=call_count,
            flush_bytes=flush_bytes,
            redraw_key=key,
            one_thread=self._one_thread,
        )

    def _verify(self, *, key: int, call_count: int) -> KeptVerdict | CandidateFailure:
        """Have the outputs of the last call, and let the judge compare them."""
        orders = take_outputs(self._process, self._draw, self._run_seconds)
        if isinstance(orders, CandidateFailure):
            return orders
        return self._compare(orders, key=key, call_count=call_count)

    def _compare(self, orders: Orders, *, key: int, call_count: int) -> KeptVerdict:
        claimed = KeptClaim(
            call_draws_seed=0,  # one set and one call: there is nothing to draw
            redraw_key=key,
            set_count=1,
            keep_count=1,
            warmup_count=0,
            call_count=call_count,
            has_guests=False,
            redraws_parameters=False,
        )
        kept = (KeptOutput(seed=0, slot=0),)
        verdict = self._judge.verify_kept(self._draw.draw, kept, claimed, orders)
        self._verdicts.append(verdict)
        return verdict

    @property
    def _wrong_call(self) -> CandidateFailure | None:
        """The first failure of a timed call that was verified."""
        failures = (failure_of(v.verdict, self._draw.workload) for v in self._verdicts)
        return next(filter(None, failures), None)

    @property
    def _is_timed_by_events(self) -> bool:
        return backend_of(self._device.language).is_timed_by_events

    def _clocked(self, cold: Claim, warm: Claim, timing: Timing) -> ClockResult:
        floor = floor_ns(self._admission.traffic_bound_ns, self._peaks, in_cache=False)
        return clocked(
            cold,
            warm,
            workload=self._draw.workload,
            median_ns=timing.median_ns,
            floor=floor,
            believed_share=backend_of(self._device.language).believed_share,
        )

    def _seen_from_outside(self, best_ns: float) -> Check | CandidateFailure:
        """Return whether the shortest sample accounts for what a call takes outside."""

        def request(key: int) -> ForeignTimeRequest:
            # With warm caches, which make no call slower: to empty them takes now more, now less.
            return self._request(1, flush_bytes=0, key=key)

        def is_right(key: int, orders: Orders) -> bool:
            self._compare(orders, key=key, call_count=1)
            return self._wrong_call is None

        clock = OutsideClock(
            self._process,
            self._empty,
            draw=self._draw,
            seconds=self._run_seconds,
            request=request,
            is_right=is_right,
        )
        return clock.check(best_ns)


def _timing(times: ForeignTimes, reason: StopReason, *, is_cold: bool) -> Timing:
    median_ns, interval = median_interval(times.samples_ns)
    return Timing(
        samples_ns=times.samples_ns,
        device_ns=times.device_ns,
        host_ns=times.host_ns,
        median_ns=median_ns,
        ci95_ns=interval,
        stop_reason=reason,
        is_cold=is_cold,
        warmup_count=0,
        discarded_count=0,
    )
