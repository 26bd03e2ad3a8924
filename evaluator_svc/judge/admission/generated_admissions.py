"""Admissions of workloads that a task does not name: of other sizes, and beside its largest one.

Whether the task can be judged on such sizes is in `other_sizes.py`, which sizes change together in
`size_groups.py`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from evaluator_svc.judge.admission.other_sizes import usable
from evaluator_svc.judge.admission.size_groups import SizeGroups, find_size_groups
from evaluator_svc.judge.admission.workload_admission import exported_program, workload_admission
from evaluator_svc.judge.baselines import EAGER
from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload
from evaluator_svc.judge.memory.judge_memory import JudgeMemory
from evaluator_svc.sizes.generated_workloads import beside_largest, generated_workloads
from kernel_foundry.domain.admission import WorkloadAdmission
from kernel_foundry.domain.device import DeviceSpec, Peaks
from kernel_foundry.domain.evaluation import Baseline
from kernel_foundry.domain.task import Task, Tolerance, Workload
from kernel_foundry.errors import TaskInvalidError

_BESIDE_BYTES: Final = {True: 1 << 31, False: 1 << 27}
"""Most inputs, parameters and outputs of a workload beside the largest, on a GPU and a CPU…"""
_BESIDE_NS: Final = 1e8
"""…and the longest that eager PyTorch may take there: judging it costs a few times that."""


def changed_kinds(prepared: Sequence[PreparedWorkload]) -> list[str]:
    """Return refusals for tensors whose rank or dtype differs between workloads."""
    first = [(t.name, t.dtype, len(t.shape)) for t in prepared[0].tensors]
    return [
        f"{item.workload.name}: ranks, dtypes and names must be those of"
        f" {prepared[0].workload.name}"
        for item in prepared[1:]
        if [(t.name, t.dtype, len(t.shape)) for t in item.tensors] != first
    ]


def changeable_sizes(task: Task, prepared: Sequence[PreparedWorkload]) -> SizeGroups:
    """Return the sizes that can change; none if the task names held-out workloads."""
    if any(item.workload.held_out for item in prepared):
        return SizeGroups()
    return find_size_groups(task, prepared[0])


def generated_admissions(
    task: Task,
    sizes: SizeGroups,
    prepared: Sequence[PreparedWorkload],
    device: DeviceSpec,
    peaks: Peaks,
    prepare: Callable[[Workload], PreparedWorkload],
    tolerance: Tolerance,
    memory: JudgeMemory,
) -> list[WorkloadAdmission]:
    """Return the workloads of other sizes that the task can be judged on."""
    first = prepared[0]
    admitted = []
    for ways in generated_workloads(sizes.groups, sizes.numbers):
        items = (usable(task, workload, prepare, tolerance, memory) for workload in ways)
        item = next((i for i in items if i is not None and not changed_kinds((first, i))), None)
        if item is not None:
            warnings: list[str] = []  # dropped: nobody asked for these sizes
            program = exported_program(item, warnings)
            facts = workload_admission(item, program, device, peaks, warnings)
            admitted.append(replace(facts, is_generated=True))
    return admitted


def admissions_beside_largest(
    task: Task,
    sizes: SizeGroups,
    prepared: Sequence[PreparedWorkload],
    admitted: Sequence[WorkloadAdmission],
    measured: Mapping[str, Sequence[Baseline]],
    prepare: Callable[[Workload], PreparedWorkload],
) -> list[WorkloadAdmission]:
    """Return a workload beside the largest timed one, where that costs little.

    Nothing is asked of it but that the module runs with it: so near to an admitted one it is
    defined and conditioned as well.
    """
    timed = [item for item in prepared if not item.workload.held_out]
    largest = max(timed, key=lambda item: item.sizes.set_bytes)
    is_gpu = largest.module.device.type == "cuda"
    eager = [b.timing.median_ns for b in measured[largest.workload.name] if b.name == EAGER]
    # A GPU's own assertion, on an index that is out of range there, would end the judge.
    is_unsafe = is_gpu and largest.may_assert
    is_cheap = largest.sizes.set_bytes <= _BESIDE_BYTES[is_gpu] and min(eager) <= _BESIDE_NS
    if is_unsafe or not is_cheap or not largest.is_repeatable:
        return []
    facts = next(w for w in admitted if w.workload == largest.workload.name)
    for workload in beside_largest(task, sizes.groups):
        try:
            item = prepare(workload)
        except TaskInvalidError:
            continue
        if not changed_kinds((largest, item)):
            beside = replace(
                facts,
                workload=workload.name,
                held_out=True,
                tensors=item.tensors,
                scalars=item.scalars,
                graph=(),
                reference_bytes=item.sizes.reference_bytes,
                is_generated=True,
            )
            return [beside]
    return []
