"""An admission that an earlier process made: looked at again before it is relied on."""

import contextlib
import dataclasses
from typing import Final

from evaluator_svc.devices.site import DeviceSite
from evaluator_svc.hardware.host_load import LoadMeter
from evaluator_svc.pipeline.timing.baseline_check import (
    BaselineClock,
    check_baselines,
    measured_again,
)
from kernel_foundry.domain.admission import Admission, WorkloadAdmission
from kernel_foundry.domain.evaluation import Baseline
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import DeviceMemoryError

_MEMORY_SHARE: Final = 0.25
"""Share of a device's memory that suffices to check baselines while others hold the rest."""


def checked_admission(site: DeviceSite, task: Task, admission: Admission) -> Admission:
    """Return the admission that an earlier process made, with baselines that are true now.

    A host that was busy then, or is now, makes eager PyTorch several times slower than it is.
    """
    judge = site.judge
    judge.facts()
    check = check_baselines if site.has_true_baselines(task) else measured_again
    is_complete = False
    baselines: dict[str, tuple[Baseline, ...]] = {}
    drifts: list[str] = []
    least = int(_MEMORY_SHARE * site.memory.capacity_bytes)
    with site.memory.lease_rest(least), site.lock.exclusive():
        meter = site.load_meter()
        # Where there is no memory for a look, what is known has to do, until a verdict looks.
        with contextlib.suppress(DeviceMemoryError):
            for workload in admission.workloads:
                if not workload.baselines:
                    continue
                checked = check(_clock(site, task, workload, meter), workload.baselines)
                baselines[workload.workload] = checked.baselines
                if checked.drift is not None:
                    drifts.append(f"{workload.workload}: {checked.drift.message}")
            is_complete = True
        load = meter.load()
    admission = with_baselines(admission, baselines)
    if drifts or (is_complete and not site.has_true_baselines(task)):
        site.remember_admission(task, admission, load, tuple(drifts))
    elif site.has_true_baselines(task):
        site.saw_baselines(task, load)
    return admission


def with_baselines(admission: Admission, baselines: dict[str, tuple[Baseline, ...]]) -> Admission:
    """Return `admission` with other baselines of the workloads that are named."""
    workloads = tuple(
        dataclasses.replace(w, baselines=baselines.get(w.workload, w.baselines))
        for w in admission.workloads
    )
    return dataclasses.replace(admission, workloads=workloads)


def _clock(
    site: DeviceSite, task: Task, workload: WorkloadAdmission, meter: LoadMeter
) -> BaselineClock:
    name = workload.workload
    return BaselineClock(
        time=lambda plan, names: site.judge.time_baselines_of(task, name, plan, names),
        seconds=site.settings.baseline_seconds,
        flush_bytes=site.spec.flush_bytes,
        is_loaded=meter.is_loaded,
    )
