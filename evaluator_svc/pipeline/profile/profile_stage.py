"""Profiles a candidate that leads: counters where they are open, else what its object tells.

The workload whose call takes longest stands for all. The device is held alone, as the counters of
others' kernels would mix with these.
"""

from collections.abc import Sequence
from dataclasses import replace

from evaluator_svc.hardware import perf_events
from evaluator_svc.pipeline.build.loaded_candidate import LoadedCandidate
from evaluator_svc.pipeline.draws import EvaluationDraws
from evaluator_svc.pipeline.evaluation_context import EvaluationContext
from evaluator_svc.pipeline.profile.counted_kernels import counted_kernels, hot_lines
from evaluator_svc.pipeline.profile.object_kernels import object_kernels
from evaluator_svc.pipeline.profile.processor_counters import count_calls
from evaluator_svc.pipeline.tools import profiled
from evaluator_svc.tools.profile_findings import profile_findings
from evaluator_svc.tools.profiler import LEAST_SECONDS, NCU, ProfilerResult
from kernel_foundry.domain.admission import WorkloadAdmission
from kernel_foundry.domain.evaluation import WorkloadResult
from kernel_foundry.domain.profile import NEAR_BEST, HotLine, KernelProfile, Profile
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.speedup import weighted_mean


class ProfileStage:
    """The profile of one candidate."""

    def __init__(
        self,
        context: EvaluationContext,
        draws: EvaluationDraws,
        candidate: LoadedCandidate,
        request: EvaluationRequest,
    ) -> None:
        self._request = request
        self._context = context
        self._draws = draws
        self._candidate = candidate

    def run(self) -> None:
        """Add profile and findings to the draft, if one is asked for and the candidate leads."""
        context = self._context
        seconds = self._request.profile_seconds
        timed = [w for w in context.admission.workloads if not w.held_out]
        results = [context.draft.workload(w.workload) for w in timed]
        if seconds is None or not leads(results, self._request.stop_above_ns):
            return
        workload, result = max(zip(timed, results, strict=True), key=lambda pair: _call_ns(pair[1]))
        with context.draft.stage("profile"):
            if context.site.kind == "cuda":
                self._profile_device(workload, result, seconds)
            else:
                self._profile_processor(workload, result)

    def _profile_device(
        self, workload: WorkloadAdmission, result: WorkloadResult, seconds: float
    ) -> None:
        found = self._counted(workload, seconds)
        if not found.launches:
            self._context.draft.profile = self._from_object(workload, result, found.reason)
            return
        own = self._candidate.bound[workload.workload].kernels
        kernels = counted_kernels(found.launches, own, result.kernel_times)
        self._context.draft.profile = self._profile(
            workload, result, tool=NCU, kernels=kernels, lines=hot_lines(found.lines, kernels)
        )
        self._context.draft.add_findings(
            profile_findings(launch for launch in found.launches if launch.kernel in own)
        )

    def _counted(self, workload: WorkloadAdmission, seconds: float) -> ProfilerResult:
        site = self._context.site
        if site.closed_counters:
            return ProfilerResult(reason=site.closed_counters)
        if seconds < LEAST_SECONDS:
            return ProfilerResult(
                reason=f"{NCU} was not started: {seconds:.0f} s are left for it, and it takes"
                f" {LEAST_SECONDS:.0f} s"
            )
        draw = self._draws.of(workload).draw
        found = profiled(self._candidate.run_again, draw, seconds=seconds)
        if found.is_closed:
            site.closed_counters = found.reason
        return found

    def _profile_processor(self, workload: WorkloadAdmission, result: WorkloadResult) -> None:
        context, name = self._context, workload.workload
        counts = count_calls(
            self._candidate.runner,
            name,
            self._candidate.bound[name].kernels,
            seconds=context.request.limits.run_seconds,
        )
        profile = self._from_object(workload, result, counts.reason)
        tool = perf_events.NAME if counts.counters else ""
        context.draft.profile = replace(profile, counters=counts.counters, tool=tool)

    def _from_object(
        self, workload: WorkloadAdmission, result: WorkloadResult, reason: str
    ) -> Profile:
        candidate, report = self._candidate, self._context.draft.compile
        kernels = object_kernels(
            result,
            candidate.bound[workload.workload].kernels,
            resources=report.kernels if report else (),
            launches=candidate.launch_facts(workload.workload),
            device=self._context.site.spec,
            assembly=candidate.assembly(workload.workload),
        )
        return self._profile(workload, result, reason=reason, kernels=kernels)

    def _profile(
        self,
        workload: WorkloadAdmission,
        result: WorkloadResult,
        *,
        tool: str = "",
        reason: str = "",
        kernels: tuple[KernelProfile, ...],
        lines: tuple[HotLine, ...] = (),
    ) -> Profile:
        return Profile(
            workload=workload.workload,
            call_ns=_call_ns(result),
            minimal_bytes=workload.minimal_bytes,
            tool=tool,
            reason=reason,
            kernels=kernels,
            lines=lines,
        )


def leads(results: Sequence[WorkloadResult], incumbents_ns: Sequence[float]) -> bool:
    """Return whether a timed candidate is the best so far, or near it.

    Args:
        results: Of the timed workloads.
        incumbents_ns: The best one's times of these; empty: there is none.
    """
    if any(result.call_bounds_ns is None for result in results):
        return False
    compared = [
        (_call_ns(result) / incumbent_ns, result.weight)
        for result, incumbent_ns in zip(results, incumbents_ns, strict=False)
        if incumbent_ns > 0
    ]
    if not compared:
        return True
    ratios, weights = zip(*compared, strict=True)
    return weighted_mean(ratios, weights) <= NEAR_BEST


def _call_ns(result: WorkloadResult) -> float:
    return 0.0 if result.call_bounds_ns is None else result.call_bounds_ns[1]
