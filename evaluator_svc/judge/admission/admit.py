"""Admission of a task: everything that is to be known before money is spent on it.

Knows nothing of candidates and of shared buffers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import torch

from evaluator_svc.judge.admission.gate import ADMISSION_SEEDS, Gate, judge_answers, settle_exact
from evaluator_svc.judge.baselines import (
    COMPILE,
    EAGER,
    GRAPH,
    BaselineFailedError,
    compile_seconds,
    time_baseline,
)
from evaluator_svc.judge.draws.input_set import InputSet
from evaluator_svc.judge.draws.prepared import PreparedWorkload
from evaluator_svc.judge.draws.value_ranges import find_value_ranges
from evaluator_svc.judge.memory.judge_memory import JudgeMemory
from evaluator_svc.judge.reference.arithmetic import arithmetic_estimate
from evaluator_svc.judge.reference.cost import count_cost
from evaluator_svc.judge.reference.graph import export_graph
from evaluator_svc.judge.reference.redundancy import find_redundancies
from evaluator_svc.judge.reference.task_module import TaskModule
from evaluator_svc.judge.reference.traffic import count_traffic, traffic_bound_ns
from evaluator_svc.memory_needs import lean_need, refusal
from evaluator_svc.messages.exchange import MeasurePlan
from kernel_foundry.domain.admission import Admission, GraphNode, WorkloadAdmission
from kernel_foundry.domain.device import DeviceSpec, Peaks
from kernel_foundry.domain.evaluation import Baseline, Fact
from kernel_foundry.domain.task import Task, Tolerance, Workload
from kernel_foundry.errors import TaskInvalidError

_BASELINE_SECONDS: Final = 1.0
_FLUSH_CACHES: Final = 2
"""Bytes flushed between samples, in last-level caches."""


@dataclass(slots=True)
class _Findings:
    refusals: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


class _DoesNotFitError(Exception):
    """A workload needs more memory than there is."""


def admit_task(
    task: Task,
    *,
    device: DeviceSpec,
    peaks: Peaks,
    memory: JudgeMemory,
    memory_bytes: int,
    prepare: Callable[[Workload], PreparedWorkload],
    note: Callable[[Fact], None],
) -> Admission:
    """Return what the device's evaluator knows of `task`.

    Args:
        task: The task.
        device: Where candidates will run.
        peaks: Its measured limits.
        memory: Where the reference runs.
        memory_bytes: Memory that an evaluation can have.
        prepare: Loads a workload, or returns it when it is loaded.
        note: Takes facts about the admission itself, such as compile time.

    Raises:
        TaskInvalidError: the reference cannot be loaded or run.
    """
    found = _Findings()
    fallback = task.tolerance or Tolerance(rtol=0.0, atol=0.0)
    try:
        prepared = _fitting(task, prepare, memory_bytes)
    except _DoesNotFitError as error:
        return _refused(task, device, fallback, str(error))
    if changed := _changed_kinds(prepared):
        return _refused(task, device, fallback, *changed)
    gate = judge_answers(task, prepared, memory)
    ranged, value_ranges = find_value_ranges(
        () if gate.refusals else prepared, gate.tolerance, ADMISSION_SEEDS[0]
    )
    at = next((item for item in prepared if item.workload.name == ranged), None)
    settle_exact(gate, at, value_ranges, memory)
    found = _Findings(refusals=gate.refusals, warnings=[*_conditioning(gate), *gate.warnings])
    time_baselines = partial(_baselines, device=device, memory=memory, found=found, note=note)
    workloads = [
        replace(
            _workload_admission(item, device, peaks, found, time_baselines),
            value_ranges=value_ranges if item.workload.name == ranged else (),
        )
        for item in prepared
    ]
    return Admission(
        task=task.digest,
        device=device,
        workloads=tuple(workloads),
        tolerance=gate.tolerance,
        refusals=_unique(found.refusals),
        warnings=_unique(found.warnings),
        derivation=gate.derivation,
        redundancies=_redundancies(prepared),
    )


def _refused(task: Task, device: DeviceSpec, tolerance: Tolerance, *reasons: str) -> Admission:
    return Admission(
        task=task.digest, device=device, workloads=(), tolerance=tolerance, refusals=reasons
    )


def _conditioning(gate: Gate) -> tuple[str, ...]:
    """Return a warning where rounding alone may leave the tolerance."""
    noise = max(gate.derivation.noise, gate.derivation.tf32_noise)
    if noise <= gate.tolerance.rtol or gate.refusals:
        return ()
    return (
        f"the reference is ill-conditioned: reordering alone changes it by {noise:.1g} of its"
        f" scale, and the tolerance is {gate.tolerance.rtol:g}",
    )


def _redundancies(prepared: Sequence[PreparedWorkload]) -> tuple[str, ...]:
    """Return what the smallest workload's results do not need."""
    small = [item for item in prepared if not item.is_large]
    if not small:
        return ()
    smallest = min(small, key=lambda item: item.size_bytes)
    return find_redundancies(smallest, (ADMISSION_SEEDS[0], ADMISSION_SEEDS[1]))


def _fitting(
    task: Task, prepare: Callable[[Workload], PreparedWorkload], memory_bytes: int
) -> list[PreparedWorkload]:
    """Return the loaded workloads; inputs that are too large are never made."""
    for workload in task.workloads:
        _require(_least_bytes(task, workload), memory_bytes, workload)
    prepared = [prepare(workload) for workload in task.workloads]
    for item in prepared:
        _require(lean_need(item.sizes, pool_bytes=0).bytes, memory_bytes, item.workload)
    return prepared


def _require(needed: int, memory_bytes: int, workload: Workload) -> None:
    if reason := refusal(needed, memory_bytes):
        raise _DoesNotFitError(f"{workload.name}: {reason}")


def _least_bytes(task: Task, workload: Workload) -> int:
    """Return what inputs need, without making them; 0 when only real values tell."""
    module = TaskModule(task, workload, torch.device("meta"))
    try:
        # The buffer that is shared, and what the reference runs on.
        return 2 * sum(
            value.numel() * value.element_size()
            for value in module.input_shapes()
            if isinstance(value, torch.Tensor)
        )
    except TaskInvalidError:
        return 0
    finally:
        module.close()


def _changed_kinds(prepared: Sequence[PreparedWorkload]) -> list[str]:
    """Return refusals for tensors whose rank or dtype differs between workloads."""
    first = [(t.name, t.dtype, len(t.shape)) for t in prepared[0].tensors]
    return [
        f"{item.workload.name}: ranks, dtypes and names must be those of"
        f" {prepared[0].workload.name}"
        for item in prepared[1:]
        if [(t.name, t.dtype, len(t.shape)) for t in item.tensors] != first
    ]


def _workload_admission(
    item: PreparedWorkload,
    device: DeviceSpec,
    peaks: Peaks,
    found: _Findings,
    time_baselines: Callable[[PreparedWorkload, Sequence[InputSet]], tuple[Baseline, ...]],
) -> WorkloadAdmission:
    # No cache holds what a large workload reads, so one set of it will do.
    seeds = ADMISSION_SEEDS[:1] if item.is_large else ADMISSION_SEEDS
    sets = [item.input_set(seed) for seed in seeds]
    graph = _graph(item, sets[0], found)
    cost = count_cost(sets[0], graph)
    traffic = count_traffic(item.tensors, graph)
    estimate = arithmetic_estimate(cost, peaks, tf32=item.task.tf32)
    is_timed = not item.workload.held_out and not found.refusals
    return WorkloadAdmission(
        workload=item.workload.name,
        held_out=item.workload.held_out,
        tensors=item.tensors,
        scalars=item.scalars,
        graph=graph,
        flops=cost.flops,
        minimal_bytes=traffic.bytes,
        traffic_bound_ns=traffic_bound_ns(traffic, cache_bytes=device.cache_bytes, peaks=peaks),
        arithmetic_estimate_ns=estimate.time_ns,
        arithmetic_unit=estimate.unit,
        reference_bytes=item.sizes.reference_bytes,
        baselines=time_baselines(item, sets) if is_timed else (),
    )


def _graph(item: PreparedWorkload, input_set: InputSet, found: _Findings) -> tuple[GraphNode, ...]:
    try:
        return export_graph(*input_set.callable_model(), item.tensors)
    except TaskInvalidError as error:
        found.warnings.append(f"no operator graph: {error.message}")
        return ()


def _baselines(
    item: PreparedWorkload,
    sets: Sequence[InputSet],
    *,
    device: DeviceSpec,
    memory: JudgeMemory,
    found: _Findings,
    note: Callable[[Fact], None],
) -> tuple[Baseline, ...]:
    plan = MeasurePlan(seconds=_BASELINE_SECONDS, flush_bytes=_FLUSH_CACHES * device.cache_bytes)
    baselines = [time_baseline(EAGER, sets, plan, memory)]
    try:
        seconds = compile_seconds(sets)
        baselines.append(time_baseline(COMPILE, sets, plan, memory))
    except BaselineFailedError as error:
        found.warnings.append(str(error))
    else:
        name = f"torch.compile of {item.task.name}, {item.workload.name}"
        note(Fact(name=name, value=f"{seconds:.1f} s to compile"))
    if memory.has_graphs:
        try:
            baselines.append(time_baseline(GRAPH, sets, plan, memory))
        except BaselineFailedError as error:
            found.warnings.append(str(error))
    return tuple(baselines)


def _unique(messages: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(messages))
