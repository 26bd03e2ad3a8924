"""Stage timing: cold samples, a short warm run, kept outputs, and the checks of the clocks.

Runs while the device's lock is held alone.
"""

import dataclasses
import secrets
import statistics
import time
from dataclasses import dataclass
from typing import Final

from evaluator_svc.languages import backend_of
from evaluator_svc.messages.call_draws import call_draws_file
from evaluator_svc.messages.comparison import RangeVerdict
from evaluator_svc.messages.draw import Draw
from evaluator_svc.messages.judge import KeptClaim, KeptVerdict, PrecisionReply
from evaluator_svc.messages.locked import CandidateFailure
from evaluator_svc.messages.measurement import MeasurementSettings
from evaluator_svc.messages.runner import (
    PoolReady,
    StepTimes,
    StepTimesRequest,
    TimeReply,
    TimeRequest,
)
from evaluator_svc.pipeline.correctness.changed_inputs import probe_data_flow
from evaluator_svc.pipeline.correctness.guest_calls import Guests
from evaluator_svc.pipeline.runner_calls import failure_of
from evaluator_svc.pipeline.timing.measurement import (
    fill_pool,
    has_times,
    joined,
    keep_count,
    measure,
    timing_of,
)
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
from kernel_foundry.domain.admission import TensorRole, WorkloadAdmission
from kernel_foundry.domain.check import Check
from kernel_foundry.domain.device import DeviceSpec, Peaks
from kernel_foundry.domain.evaluation import (
    Baseline,
    EvaluationOutcome,
    StopReason,
    Timing,
)
from kernel_foundry.domain.finding import Finding, FindingKind, Severity
from kernel_foundry.domain.kernel_time import KernelTime

_KEPT_WARM_CALLS: Final = 1
_BLOCKS: Final = 3
"""Alternating blocks of candidate and baselines at a promotion."""
_BLOCKS_ALONE: Final = 2
"""Blocks of the candidate else: kept calls of each are judged before the next begins."""
_WARM_PAUSES_SECONDS: Final = (0.0, 0.0, 0.0, 0.25, 1.0)
"""Before each try: a pause by the scheduler, or another program that has the cores for a while,
looks like a forged clock. Neither lasts; a forgery does."""
_WARM_SAMPLES: Final = 200
_WEIGHTS: Final = (TensorRole.PARAMETER.value, TensorRole.BUFFER.value)
_LEAST_SECONDS_BY_EVENTS: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingSettings:
    """How one workload is timed."""

    device: DeviceSpec
    peaks: Peaks
    seconds: float
    """Budget of the cold samples."""
    warm_seconds: float
    run_seconds: float
    """Seconds beyond the budget after which a run is ended."""
    pool_limit_bytes: int
    stop_above_ns: float
    fresh_baselines: bool
    kernels: tuple[str, ...]
    """Kernels that the plan launches."""
    divides_time: bool
    """Whether to measure how a call's time divides among its steps."""
    is_prepared: bool = False
    """Whether the plan prepares its parameters, which is timed before each cold call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadTimes:
    """One workload's times."""

    timing: Timing
    warm_timing: Timing
    baselines: tuple[Baseline, ...]
    pool: PoolReady
    flush_bytes: int
    own_share: float | None
    """Share of time in the candidate's own kernels; None when it was not to be measured."""
    prepare_ns: float | None
    kernel_times: tuple[KernelTime, ...]
    failure: CandidateFailure | None
    """The times are impossible, or a timed call's outputs are wrong."""
    checks: tuple[Check, ...] = ()
    findings: tuple[Finding, ...] = ()
    """Suspicions."""
    audits: tuple[PrecisionReply, ...] = ()
    """Precision of timed calls: the worst one of each measurement."""
    guests: tuple[RangeVerdict, ...] = ()
    """On calls in between, which had inputs of unusual values."""


def least_seconds(device: DeviceSpec) -> float:
    """Return how long a cold measurement takes at least.

    Events tick in 32 ns on an H200: samples of a few microseconds are alike long before their
    median is.
    """
    return _LEAST_SECONDS_BY_EVENTS if backend_of(device.language).is_timed_by_events else 0.0


class WorkloadTimer:
    """Times one workload of one candidate.

    Args:
        process: The runner, which has run the workload before.
        judge: Poisons, verifies, times baselines.
        draw: The workload's inputs.
        admission: What is known of the workload.
        settings: How to time.
        guests: Inputs of unusual values for calls among the timed ones; None: there are none.
    """

    def __init__(
        self,
        process: ChildProcess,
        judge: JudgeClient,
        *,
        draw: Draw,
        admission: WorkloadAdmission,
        settings: TimingSettings,
        guests: Guests | None = None,
    ) -> None:
        self._process = process
        self._judge = judge
        self._draw = draw
        self._admission = admission
        self._settings = settings
        self._guests = guests
        self._guest_verdicts: list[RangeVerdict] = []
        self._flush_bytes = settings.device.flush_bytes

    def time(self) -> WorkloadTimes | CandidateFailure:
        """Take all measurements of the workload."""
        pool = fill_pool(
            self._process,
            self._draw.workload,
            self._settings.device,
            limit_bytes=self._settings.pool_limit_bytes,
        )
        if isinstance(pool, CandidateFailure):
            return pool
        blocks = self._cold_blocks(pool)
        if isinstance(blocks, CandidateFailure):
            return blocks
        cold, claim, baselines, verdicts = blocks
        timing = joined([timing_of(block, is_cold=True) for block in cold])
        prepare_ns = [time_ns for block in cold for time_ns in block.prepare_ns]
        warm = self._warm(timing.median_ns, pool)
        if isinstance(warm, CandidateFailure):
            return warm
        warm_timed, warm_claim, warm_verdict = warm
        verdicts = [*verdicts, warm_verdict]
        failures = (failure_of(kept.verdict, self._draw.workload) for kept in verdicts)
        steps = self._step_times() if self._settings.divides_time else None
        if isinstance(steps, CandidateFailure):
            return steps
        clocked = self._clocked(claim, warm_claim, timing, pool)
        return WorkloadTimes(
            timing=timing,
            warm_timing=timing_of(warm_timed, is_cold=False),
            baselines=baselines,
            pool=pool,
            flush_bytes=self._flush_bytes,
            own_share=None if steps is None else steps.own_share,
            prepare_ns=statistics.median(prepare_ns) if prepare_ns else None,
            kernel_times=() if steps is None else steps.kernel_times,
            failure=next(filter(None, failures), clocked.failure),
            checks=(*(c for kept in verdicts for c in kept.verdict.checks), *clocked.checks),
            findings=clocked.suspicions,
            audits=tuple(kept.audited for kept in verdicts if kept.audited is not None),
            guests=tuple(self._guest_verdicts),
        )

    def probed(self, timed: WorkloadTimes) -> WorkloadTimes:
        """Return `timed` with what came of changing inputs after the last call."""
        found = probe_data_flow(
            self._process,
            self._judge,
            self._draw,
            seconds=self._settings.run_seconds,
            is_prepared=self._settings.is_prepared,
        )
        return dataclasses.replace(
            timed, failure=found.failure, checks=(*timed.checks, *found.checks)
        )

    def _cold_blocks(
        self, pool: PoolReady
    ) -> tuple[list[TimeReply], Claim, tuple[Baseline, ...], list[KeptVerdict]] | CandidateFailure:
        """Return the blocks of one measurement, what they claim together, and a verdict on each.

        Ends with the first block whose kept outputs are wrong; its verdict is then the last one.
        """
        settings = self._settings
        count = _BLOCKS if settings.fresh_baselines else _BLOCKS_ALONE
        names = tuple(b.name for b in self._admission.baselines)
        measured: list[tuple[TimeReply, Claim]] = []
        verdicts: list[KeptVerdict] = []
        baselines: list[tuple[Baseline, ...]] = []
        for _ in range(count):
            of_block = MeasurementSettings(
                seconds=settings.seconds / count,
                flush_bytes=self._flush_bytes,
                stop_above_ns=settings.stop_above_ns,
                min_seconds=least_seconds(settings.device),
                redraw_key=secrets.randbits(63),
            )
            self._judge.poison(self._draw.draw)
            order = () if self._guests is None else self._guests.order()
            taken = self._measure(of_block, pool, keep_count=keep_count(self._draw), guests=order)
            if isinstance(taken, CandidateFailure):
                return taken
            block, kept = taken
            measured.append(block)
            verdicts.append(self._judge.verify_kept(self._draw.draw, block[0].kept, kept))
            if self._guests is not None:
                made = block[0].guest_calls
                self._guest_verdicts += self._guests.verdicts(self._judge, order, made)
            if settings.fresh_baselines:
                baselines.append(self._judge.time_baselines(self._draw.draw, of_block, names))
            is_slow = block[0].stop_reason is StopReason.SLOWER_THAN_INCUMBENT
            is_wrong = verdicts[-1].verdict.is_wrong or any(
                verdict.is_wrong for verdict in self._guest_verdicts
            )
            if is_wrong or is_slow:
                break
        merged = _merged_baselines(baselines) if baselines else self._admission.baselines
        claim = joined_claim([claim for _, claim in measured])
        return [block for block, _ in measured], claim, merged, verdicts

    @property
    def _is_timed_by_events(self) -> bool:
        return backend_of(self._settings.device.language).is_timed_by_events

    def _warm(
        self, cold_median_ns: float, pool: PoolReady
    ) -> tuple[TimeReply, Claim, KeptVerdict] | CandidateFailure:
        """Measure with warm caches; again where it does not fit the clock or the cold median.

        Each call has to write its outputs anew, as cold ones have. Where events count it has other
        inputs than the call before. Where the host's clock counts, little may come between the
        calls, since their sum is compared with it: inputs stay as drawn.
        """
        is_redrawn = self._is_timed_by_events
        self._judge.poison(self._draw.draw)
        for pause_seconds in _WARM_PAUSES_SECONDS:
            time.sleep(pause_seconds)
            settings = MeasurementSettings(
                seconds=self._settings.warm_seconds,
                min_samples=5,
                max_samples=_WARM_SAMPLES,
                redraw_key=secrets.randbits(63) if is_redrawn else 0,
            )
            taken = self._measure(settings, pool, keep_count=_KEPT_WARM_CALLS)
            if isinstance(taken, CandidateFailure):
                return taken
            (timed, claim), kept = taken
            if adds_up(claim) and not is_far_below(cold_median_ns, claim):
                break
        return timed, claim, self._judge.verify_kept(self._draw.draw, timed.kept, kept)

    def _step_times(self) -> StepTimes | CandidateFailure:
        return ask_candidate(
            self._process,
            StepTimesRequest(
                workload=self._draw.workload,
                kernels=self._settings.kernels,
                flush_bytes=self._flush_bytes,
            ),
            StepTimes,
            seconds=self._settings.run_seconds,
            doing="timing each step",
        )

    def _measure(
        self,
        settings: MeasurementSettings,
        pool: PoolReady,
        *,
        keep_count: int,
        guests: tuple[int, ...] = (),
    ) -> tuple[tuple[TimeReply, Claim], KeptClaim] | CandidateFailure:
        """Return one measurement, and what decided which of its calls are kept."""
        call_draws_seed = secrets.randbits(63)
        drawn = self._guests.drawn if self._guests is not None and guests else None
        request = TimeRequest(
            workload=self._draw.workload,
            settings=settings,
            poison=True,
            keep_count=keep_count,
            guests=None if drawn is None else drawn.draw,
            guest_seeds=guests,
        )
        with call_draws_file(call_draws_seed) as call_draws:
            descriptors = (call_draws, *(() if drawn is None else drawn.descriptors))
            timed, passed = watched(
                self._process,
                lambda: measure(
                    self._process, request, descriptors, run_seconds=self._settings.run_seconds
                ),
            )
        if isinstance(timed, CandidateFailure):
            return timed
        is_unprepared = settings.redraw_key and self._settings.is_prepared and not timed.prepare_ns
        if not has_times(timed) or is_unprepared or (guests and not timed.guest_calls):
            return _no_times()
        claim = Claim(
            samples_ns=timed.samples_ns,
            # A kernel on the host could forge these too, and so escape our own clock.
            host_ns=timed.host_ns if self._is_timed_by_events else (),
            warmup_count=timed.warmup_count,
            wall_ns=passed.wall_ns,
            waiting_ns=passed.waiting_ns,
            busy_ns=passed.busy_ns,
            poisoning_ns=self._poisoning_ns(),
        )
        kept = KeptClaim(
            call_draws_seed=call_draws_seed,
            redraw_key=settings.redraw_key,
            set_count=pool.set_count,
            keep_count=keep_count,
            has_guests=bool(guests),
            warmup_count=timed.warmup_count,
            call_count=len(timed.samples_ns) + timed.discarded_count,
        )
        return (timed, claim), kept

    def _poisoning_ns(self) -> float:
        """Return the least time of overwriting the outputs before a call."""
        outputs = (s for s in self._draw.slots if s.role == TensorRole.OUTPUT.value)
        output_bytes = sum(slot.size_bytes for slot in outputs)
        return 1e9 * output_bytes / self._settings.peaks.cache_bandwidth_bytes_per_second

    def _clocked(self, cold: Claim, warm: Claim, timing: Timing, pool: PoolReady) -> ClockResult:
        settings, device = self._settings, self._settings.device
        # Behind `flush_bytes` a larger cache keeps nothing.
        in_cache = pool.pool_bytes < min(device.cache_bytes, device.flush_bytes)
        weights = [s for s in self._draw.slots if s.role in _WEIGHTS]
        floor = floor_ns(
            self._admission.traffic_bound_ns,
            settings.peaks,
            in_cache=in_cache,
            prepared_bytes=sum(s.size_bytes for s in weights) if settings.is_prepared else 0,
        )
        return clocked(
            cold,
            warm,
            workload=self._draw.workload,
            median_ns=timing.median_ns,
            floor=floor,
            believed_share=backend_of(device.language).believed_share,
        )


def _no_times() -> CandidateFailure:
    finding = Finding(
        kind=FindingKind.IMPOSSIBLE_TIME,
        severity=Severity.ERROR,
        message="the runner gave no times, or times that are not numbers",
    )
    return CandidateFailure(outcome=EvaluationOutcome.REJECTED, findings=(finding,))


def _merged_baselines(blocks: list[tuple[Baseline, ...]]) -> tuple[Baseline, ...]:
    """Return each baseline that worked in every block."""
    timings = [{baseline.name: baseline.timing for baseline in block} for block in blocks]
    return tuple(
        Baseline(name=name, timing=joined([block[name] for block in timings]))
        for name in timings[0]
        if all(name in block for block in timings)
    )
