"""Admissions of workloads that a task does not name: of other sizes, and near its largest one.

Whether the task can be judged on such sizes is in `other_sizes.py`, which sizes change together in
`size_groups.py`.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from evaluator_svc.baseline_names import EAGER
from evaluator_svc.judge.admission.answer_check import ADMISSION_SEEDS
from evaluator_svc.judge.admission.check_trial import refusal_of_own
from evaluator_svc.judge.admission.other_sizes import usable
from evaluator_svc.judge.admission.size_groups import SizeGroups, find_size_groups
from evaluator_svc.judge.admission.value_ranges import find_generated_ranges
from evaluator_svc.judge.admission.workload_admission import exported_program, workload_admission
from evaluator_svc.judge.comparison.needed_factor import cancelling_factor
from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload
from evaluator_svc.judge.memory.judge_memory import JudgeMemory
from evaluator_svc.sizes.generated_workloads import (
    beside_largest,
    further_numbers,
    generated_workloads,
)
from evaluator_svc.sizes.long_axes import LONGER, long_axis_workloads
from evaluator_svc.sizes.spare_workloads import spare_workloads
from kernel_foundry.domain.admission import TensorRole, ValueRange, WorkloadAdmission
from kernel_foundry.domain.device import DeviceSpec, Peaks
from kernel_foundry.domain.evaluation import Baseline
from kernel_foundry.domain.task import Task, Tolerance, Workload
from kernel_foundry.errors import TaskInvalidError

_BESIDE_BYTES: Final = {True: 1 << 31, False: 1 << 27}
"""Most bytes of inputs, parameters and outputs of a generated workload beside the largest one, on a
GPU (True) and on a CPU."""
_BESIDE_NS: Final = 1e8
"""Longest time of eager PyTorch on such a workload: judging it costs a few times that."""
_LEAST_ELEMENTS: Final = 3
"""Fewest elements of an output at tiny sizes, if it has as many at others."""

_NEAR_SEED: Final = 101
"""Seed of the inputs on which the task's check is tried there."""

_FURTHER_NS: Final = 3e7
"""Longest time of eager PyTorch on timed sizes where numbers become many times as large."""

_LONG_BYTES: Final = 1 << 30
"""Most memory that a reference quadratic in one long axis may need, with sizes beside it that are
not tiny."""
_LONG_NS: Final = 5e8
"""Longest time of eager PyTorch on such sizes."""


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


def admissions_of_other_sizes(
    task: Task,
    sizes: SizeGroups,
    prepared: Sequence[PreparedWorkload],
    admitted: Sequence[WorkloadAdmission],
    measured: Mapping[str, Sequence[Baseline]],
    ranges: Sequence[ValueRange],
    *,
    device: DeviceSpec,
    peaks: Peaks,
    prepare: Callable[[Workload], PreparedWorkload],
    tolerance: Tolerance,
    memory: JudgeMemory,
) -> tuple[WorkloadAdmission, ...]:
    """Return the workloads of other sizes that the task can be judged on, spare ones last.

    Args:
        task: The task.
        sizes: What can change in it.
        prepared: Its own workloads.
        admitted: What is known of them.
        measured: Their baselines, by workload.
        ranges: Unusual values that candidates are tried on in the smallest of them.
        device: Where candidates run.
        peaks: Its measured limits.
        prepare: Loads a workload.
        tolerance: What candidates are held to.
        memory: Where the reference runs.
    """
    first, facts = prepared[0], admitted[0]

    def of_other_sizes(facts: WorkloadAdmission, item: PreparedWorkload) -> WorkloadAdmission:
        return _of_other_sizes(facts, item, device, peaks)

    def loaded(ways: Sequence[Workload]) -> Iterator[PreparedWorkload]:
        items = (usable(task, workload, prepare, tolerance, memory) for workload in ways)
        return (i for i in items if i is not None and not changed_kinds((first, i)))

    def where_sums_cancel(item: PreparedWorkload) -> WorkloadAdmission:
        factor = cancelling_factor(item.module, tolerance)
        return replace(of_other_sizes(facts, item), tolerance_factor=factor)

    usual = [
        item
        for ways in generated_workloads(sizes.groups, sizes.numbers, sizes.beyond)
        if (item := next(loaded(ways), None)) is not None
    ]
    found = [_with_graph(item, device, peaks) for item in usual]
    known = find_generated_ranges(usual, ranges, tolerance, ADMISSION_SEEDS[0])
    found = [replace(w, value_ranges=known.get(w.workload, ())) for w in found]
    beside = _beside_largest(task, sizes, prepared, measured, prepare)
    if beside is not None:
        largest, item = beside
        of_largest = next(w for w in admitted if w.workload == largest.workload.name)
        found.append(of_other_sizes(of_largest, item))
    for ways in long_axis_workloads(task, sizes.groups):
        item = next((i for i in loaded(ways) if _is_telling(i, first)), None)
        if item is not None:
            found.append(where_sums_cancel(item))
    timed = (b.timing.median_ns for b in measured[facts.workload] if b.name == EAGER)
    eager = min(timed, default=math.inf)
    further = further_numbers(sizes.groups, sizes.further) if eager <= _FURTHER_NS else ()
    found += map(where_sums_cancel, islice(loaded(further), 1))
    has_long = (
        LONGER**2 * first.sizes.reference_bytes <= _LONG_BYTES and LONGER**2 * eager <= _LONG_NS
    )
    for spare in spare_workloads(sizes.groups):
        if spare.is_long and not has_long:
            continue
        item = next(loaded([spare.workload]), None)
        if item is None and spare.is_near and first.sizes.set_bytes <= _BESIDE_BYTES[False]:
            item = _near(spare.workload, first, prepare)
        if item is not None:
            factor = cancelling_factor(item.module, tolerance) if spare.is_long else 1.0
            spared = replace(of_other_sizes(facts, item), is_spare=True)
            found.append(replace(spared, tolerance_factor=factor))
    # The same sizes may be had in two ways: the first counts.
    return tuple({w.workload: w for w in reversed(found)}.values())[::-1]


def _with_graph(item: PreparedWorkload, device: DeviceSpec, peaks: Peaks) -> WorkloadAdmission:
    warnings: list[str] = []  # dropped: nobody asked for these sizes
    program = exported_program(item, warnings)
    facts = workload_admission(item, program, device, peaks, warnings)
    return replace(facts, is_generated=True)


def _near(
    workload: Workload, beside: PreparedWorkload, prepare: Callable[[Workload], PreparedWorkload]
) -> PreparedWorkload | None:
    """Return a workload whose sizes are near those of another; None if the module does not run.

    So near to an admitted one it is defined and conditioned as well. Not so a check that alone
    tells what is right: it is asked.
    """
    # A GPU's own assertion, on an index that is out of range there, would end the judge.
    is_unsafe = beside.module.device.type == "cuda" and beside.traits.may_assert
    if is_unsafe or not beside.is_repeatable:
        return None
    try:
        item = prepare(workload)
        if changed_kinds((beside, item)):
            return None
        is_refused = not item.task.compare and bool(refusal_of_own(item.shared_set(_NEAR_SEED)))
    except TaskInvalidError:
        return None
    return None if is_refused else item


def _is_telling(item: PreparedWorkload, first: PreparedWorkload) -> bool:
    """Return whether outputs have some elements each, if they have them in the first workload.

    The scale of one or two elements may be next to nothing by chance.
    """
    outputs = (
        [math.prod(t.shape) for t in i.tensors if t.role is TensorRole.OUTPUT]
        for i in (item, first)
    )
    return all(n >= min(_LEAST_ELEMENTS, usual) for n, usual in zip(*outputs, strict=True))


def _of_other_sizes(
    facts: WorkloadAdmission, item: PreparedWorkload, device: DeviceSpec, peaks: Peaks
) -> WorkloadAdmission:
    """Return a generated workload with the facts of another one that sizes do not change."""
    own = workload_admission(item, None, device, peaks, [])
    return replace(
        facts,
        workload=own.workload,
        held_out=True,
        tensors=own.tensors,
        scalars=own.scalars,
        graph=(),
        flops=own.flops,
        minimal_bytes=own.minimal_bytes,
        traffic_bound_ns=own.traffic_bound_ns,
        arithmetic_estimate_ns=own.arithmetic_estimate_ns,
        arithmetic_unit=own.arithmetic_unit,
        reference_bytes=own.reference_bytes,
        is_generated=True,
    )


def _beside_largest(
    task: Task,
    sizes: SizeGroups,
    prepared: Sequence[PreparedWorkload],
    measured: Mapping[str, Sequence[Baseline]],
    prepare: Callable[[Workload], PreparedWorkload],
) -> tuple[PreparedWorkload, PreparedWorkload] | None:
    """Return the largest timed workload and one beside it; None where that costs much.

    Nothing is asked of it but that the module runs with it.
    """
    timed = [item for item in prepared if not item.workload.held_out]
    largest = max(timed, key=lambda item: item.sizes.set_bytes)
    is_gpu = largest.module.device.type == "cuda"
    eager = [b.timing.median_ns for b in measured[largest.workload.name] if b.name == EAGER]
    is_cheap = largest.sizes.set_bytes <= _BESIDE_BYTES[is_gpu] and min(eager) <= _BESIDE_NS
    if not is_cheap:
        return None
    for workload in beside_largest(task, sizes.groups):
        item = _near(workload, largest, prepare)
        if item is not None:
            return largest, item
    return None
