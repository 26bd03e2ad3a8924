"""The baselines that a verdict compares with: measured again where they are no longer true.

Runs while the device's lock is held alone. How one workload's are checked lies in
`baseline_check.py`.
"""

from collections.abc import Sequence
from dataclasses import replace

from evaluator_svc.hardware.host_load import LoadMeter
from evaluator_svc.pipeline.draws import EvaluationDraws
from evaluator_svc.pipeline.evaluation_context import EvaluationContext
from evaluator_svc.pipeline.timing.admission_check import with_baselines
from evaluator_svc.pipeline.timing.baseline_check import (
    BaselineClock,
    BaselineComparison,
    check_baselines,
    compared,
)
from kernel_foundry.domain.admission import WorkloadAdmission
from kernel_foundry.domain.evaluation import Baseline


def refresh_baselines(
    context: EvaluationContext,
    draws: EvaluationDraws,
    timed: Sequence[WorkloadAdmission],
    meter: LoadMeter,
) -> None:
    """See to it that a verdict compares with baselines that are true now.

    Those of a promotion were timed beside the candidate; those of the admission are looked at
    again after a while, and whenever the host is loaded.

    Args:
        context: The evaluation; its draft takes the baselines and what has changed.
        draws: Inputs to time them on.
        timed: The workloads that the candidate was timed on.
        meter: Running since before the first sample.
    """
    site, draft, task = context.site, context.draft, context.request.task
    load = meter.load()
    is_due = site.baselines.is_due(task.digest, is_loaded=meter.is_loaded())
    is_fresh = context.request.fresh_baselines
    if load is not None and (finding := load.finding()):
        draft.add_findings((finding,))
    if not is_due and not is_fresh:
        return
    drifted: dict[str, tuple[Baseline, ...]] = {}
    for workload in timed:
        checked = _checked(context, draws, workload, meter)
        if checked.drift is not None:
            draft.add_findings((checked.drift,))
        if checked.baselines != workload.baselines:
            drifted[workload.workload] = checked.baselines
        if not is_fresh:
            result = draft.workload(workload.workload)
            draft.set_workload(replace(result, baselines=checked.baselines))
    load = meter.load() or load
    if drifted:
        admission = site.remembered_admission(task) or context.admission
        site.remember_admission(task, with_baselines(admission, drifted), load)
    else:
        site.saw_baselines(task, load)


def _checked(
    context: EvaluationContext,
    draws: EvaluationDraws,
    workload: WorkloadAdmission,
    meter: LoadMeter,
) -> BaselineComparison:
    if context.request.fresh_baselines:
        # Timed beside the candidate: what made them slower made it slower, too.
        beside = context.draft.workload(workload.workload).baselines
        return compared(workload.baselines, beside, is_loaded=False)
    draw = draws.of(workload).draw.draw
    clock = BaselineClock(
        time=lambda plan, names: context.judge.time_baselines(draw, plan, names),
        seconds=context.site.settings.baseline_seconds,
        flush_bytes=context.site.spec.flush_bytes,
        is_loaded=meter.is_loaded,
    )
    return check_baselines(clock, workload.baselines)
