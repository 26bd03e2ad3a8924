"""An admission that an earlier process made: looked at again before it is relied on."""

import contextlib
import dataclasses
from typing import Final

from evaluator_svc.devices.site import DeviceSite
from evaluator_svc.pipeline.timing.baseline_check import BaselineComparison, check_baselines
from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.evaluation import Baseline
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import DeviceMemoryError

_MEMORY_SHARE: Final = 0.25
"""Of a device's memory, with which a look at baselines begins while others hold the rest."""


def checked_admission(site: DeviceSite, task: Task, admission: Admission) -> Admission:
    """Return the admission that an earlier process made, with baselines that are true now.

    A host that was busy then, or is now, makes eager PyTorch several times slower than it is.
    """
    judge = site.judge
    judge.facts()
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
                checked = _checked(site, task, workload.workload, workload.baselines)
                baselines[workload.workload] = checked.baselines
                if checked.drift is not None:
                    drifts.append(f"{workload.workload}: {checked.drift.message}")
        load = meter.load()
    admission = with_baselines(admission, baselines)
    if drifts:
        site.remember_admission(task, admission, load, tuple(drifts))
    else:
        site.saw_baselines(task, load)
    return admission


def with_baselines(admission: Admission, baselines: dict[str, tuple[Baseline, ...]]) -> Admission:
    """Return `admission` with other baselines of the workloads that are named."""
    workloads = tuple(
        dataclasses.replace(w, baselines=baselines.get(w.workload, w.baselines))
        for w in admission.workloads
    )
    return dataclasses.replace(admission, workloads=workloads)


def _checked(
    site: DeviceSite, task: Task, workload: str, known: tuple[Baseline, ...]
) -> BaselineComparison:
    return check_baselines(
        lambda plan, names: site.judge.time_baselines_of(task, workload, plan, names),
        known,
        seconds=site.settings.baseline_seconds,
        flush_bytes=site.spec.flush_bytes,
    )
