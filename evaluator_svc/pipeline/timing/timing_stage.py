"""The timing stage: every timed workload of a candidate, while nothing else uses the device.

`workload_timing.py` times one workload, and `baseline_refresh.py` measures the baselines again
that it is compared with.
"""

import dataclasses

from evaluator_svc.messages.locked import CandidateFailure
from evaluator_svc.pipeline.build.loaded_candidate import LoadedCandidate
from evaluator_svc.pipeline.correctness.precision import AssessPrecision
from evaluator_svc.pipeline.correctness.value_ranges import RangeTrials
from evaluator_svc.pipeline.draws import EvaluationDraws
from evaluator_svc.pipeline.evaluation_context import EvaluationContext
from evaluator_svc.pipeline.memory.memory_plan import MemoryPlan, pool_limit
from evaluator_svc.pipeline.timing.arithmetic_check import arithmetic_check
from evaluator_svc.pipeline.timing.baseline_refresh import refresh_baselines
from evaluator_svc.pipeline.timing.prepare_limit import layout_limit_ns, prepare_findings
from evaluator_svc.pipeline.timing.timed_calls import assess_timed_calls
from evaluator_svc.pipeline.timing.workload_timing import (
    TimingSettings,
    WorkloadTimer,
    WorkloadTimes,
)
from kernel_foundry.domain.admission import WorkloadAdmission


class TimingStage:
    """Times a correct candidate; adds its findings to the draft.

    Args:
        context: The evaluation.
        draws: Its inputs.
        candidate: What is timed.
        ranges: Has the unusual inputs of calls among the timed ones.
        memory_plan: Says what input sets may hold.
        assess_precision: Judges the outputs of timed calls.
        stop_above_ns: Incumbent medians of the timed workloads.
    """

    def __init__(
        self,
        context: EvaluationContext,
        draws: EvaluationDraws,
        candidate: LoadedCandidate,
        *,
        ranges: RangeTrials,
        memory_plan: MemoryPlan,
        assess_precision: AssessPrecision,
        stop_above_ns: tuple[float, ...],
    ) -> None:
        self._incumbents_ns = stop_above_ns
        self._context = context
        self._draft = context.draft
        self._draws = draws
        self._candidate = candidate
        self._ranges = ranges
        self._memory_plan = memory_plan
        self._assess_precision = assess_precision
        self.pool_bytes = 0
        """Bytes of all timed input sets so far."""

    def run(self) -> CandidateFailure | None:
        """Time every workload that is not held out; return the first failure."""
        meter = self._context.site.load_meter()
        timed = [w for w in self._context.admission.workloads if not w.held_out]
        for index, workload in enumerate(timed):
            failure = self._time(workload, index)
            if failure is not None:
                return failure
        with self._draft.stage("timing"):
            refresh_baselines(self._context, self._draws, timed, meter)
        return None

    def _time(self, workload: WorkloadAdmission, index: int) -> CandidateFailure | None:
        timer = self._timer(workload, index)
        with self._draft.stage("timing"):
            result = timer.time()
        if isinstance(result, CandidateFailure):
            return result
        if result.failure is None:
            name, judge = workload.workload, self._assess_precision
            failure = assess_timed_calls(result.audits, name, judge, self._draft)
            failure = failure or self._ranges.assess_guests(name, result.guests, judge)
            result = dataclasses.replace(result, failure=failure)
        if result.failure is None:
            with self._draft.stage("data_flow"):
                result = timer.probed(result)
        self._keep(workload, result)
        if result.failure is None:
            self._check_arithmetic(workload)
        return result.failure

    def _timer(self, workload: WorkloadAdmission, index: int) -> WorkloadTimer:
        context = self._context
        request, site = context.request, context.site
        incumbents, bound = self._incumbents_ns, self._candidate.bound[workload.workload]
        return WorkloadTimer(
            self._candidate.runner,
            context.judge,
            draw=self._draws.of(workload).draw,
            admission=workload,
            guests=self._ranges.guests.get(workload.workload),
            settings=TimingSettings(
                device=site.spec,
                peaks=context.peaks,
                seconds=request.limits.timing_seconds,
                warm_seconds=site.settings.warm_seconds,
                run_seconds=request.limits.run_seconds,
                pool_limit_bytes=pool_limit(workload.workload, self._memory_plan, site),
                stop_above_ns=incumbents[index] if index < len(incumbents) else 0.0,
                fresh_baselines=request.fresh_baselines,
                kernels=bound.kernels,
                divides_time=len(bound.kernels) + bound.library_call_count > 1,
                is_prepared=bound.prepared_bytes > 0,
            ),
        )

    def _keep(self, workload: WorkloadAdmission, timed: WorkloadTimes) -> None:
        peaks, language = self._context.peaks, self._context.site.spec.language
        bound = self._candidate.bound[workload.workload]
        result = dataclasses.replace(
            self._draft.workload(workload.workload),
            timing=timed.timing,
            warm_timing=timed.warm_timing,
            baselines=timed.baselines,
            own_share=timed.own_share,
            prepare_ns=timed.prepare_ns,
            prepare_limit_ns=(
                None if timed.prepare_ns is None else layout_limit_ns(bound, language, peaks)
            ),
            kernel_times=timed.kernel_times,
        )
        self._draft.set_workload(result)
        self._draft.add_findings(prepare_findings(result, bound, peaks))
        self._draft.add_checks(timed.checks)
        self._draft.add_findings(timed.findings)
        self.pool_bytes += timed.pool.pool_bytes
        self._draft.add_fact(
            f"pool of {workload.workload}",
            f"{timed.pool.set_count} input sets, {timed.pool.pool_bytes} bytes; "
            f"{timed.flush_bytes} bytes read between samples to empty the caches",
        )

    def _check_arithmetic(self, workload: WorkloadAdmission) -> None:
        context, candidate = self._context, self._candidate
        check, findings = arithmetic_check(
            workload,
            self._draft.workload(workload.workload),
            language=context.site.spec.language,
            peaks=context.peaks,
            facts=None if candidate.uses_library else candidate.facts,
            redundancies=context.admission.redundancies,
        )
        self._draft.add_checks((check,))
        self._draft.add_findings(findings)
