"""Admission of a task: everything that is to be known before money is spent on it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import torch
from torch.export import ExportedProgram

from evaluator_svc.judge.admission.answer_check import (
    ADMISSION_SEEDS,
    AnswerCheck,
    check_answers,
    settle_exact,
)
from evaluator_svc.judge.admission.other_sizes import usable
from evaluator_svc.judge.admission.size_groups import SizeGroups, find_size_groups
from evaluator_svc.judge.admission.stages import Stages
from evaluator_svc.judge.admission.untried import untried_arguments
from evaluator_svc.judge.admission.value_ranges import find_value_ranges
from evaluator_svc.judge.baselines import (
    COMPILE,
    EAGER,
    GRAPH,
    BaselineFailedError,
    compile_seconds,
    compilers,
    settled_baseline,
)
from evaluator_svc.judge.comparison.rounding_noise import UNKNOWN
from evaluator_svc.judge.graph.arithmetic_estimate import arithmetic_estimate
from evaluator_svc.judge.graph.cost import count_cost
from evaluator_svc.judge.graph.graph import export_program, graph_of
from evaluator_svc.judge.graph.redundancy import find_redundancies
from evaluator_svc.judge.graph.traffic import count_traffic, traffic_bound_ns
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload, keeping_sets
from evaluator_svc.judge.memory.judge_memory import JudgeMemory
from evaluator_svc.judge.reference.formats import narrowest
from evaluator_svc.judge.reference.name_table import dtype_name
from evaluator_svc.judge.reference.task_module import TaskModule
from evaluator_svc.judge.threads import threads_for
from evaluator_svc.judge.timed_calls.call_inputs import redrawn_tensors
from evaluator_svc.judge.unusual_values.unusual_integers import unvaried_numbers
from evaluator_svc.memory_needs import lean_need, refusal
from evaluator_svc.messages.measurement import MeasurementSettings
from evaluator_svc.sizes.generated_workloads import beside_largest, generated_workloads
from kernel_foundry.domain.admission import (
    Admission,
    Distribution,
    GraphNode,
    TensorRole,
    ValueRange,
    WorkloadAdmission,
)
from kernel_foundry.domain.device import DeviceSpec, Peaks
from kernel_foundry.domain.evaluation import Baseline, Fact
from kernel_foundry.domain.task import Task, Tolerance, Workload
from kernel_foundry.errors import TaskInvalidError

_NETWORK_PARAMETERS: Final = 40
"""Parameter tensors from which on a reference is a network of many kernels."""
_BESIDE_BYTES: Final = {True: 1 << 31, False: 1 << 27}
"""Most inputs, parameters and outputs of a workload beside the largest, on a GPU and a CPU…"""
_BESIDE_NS: Final = 1e8
"""…and the longest that eager PyTorch may take there: judging it costs a few times that."""


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
    baselines: tuple[str, ...],
    baseline_seconds: float,
    is_alone: bool,
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
        baselines: What is timed beside eager, where the device has it.
        baseline_seconds: Longest measurement of one baseline.
        is_alone: Whether all of it is there now: a baseline that it is too little for is left out.
        prepare: Loads a workload, or returns it when it is loaded.
        note: Takes facts about the admission itself, such as compile time.

    Raises:
        TaskInvalidError: the reference cannot be loaded or run.
        torch.OutOfMemoryError: there is too little memory, which may be for want of being alone.
    """
    stages = Stages()
    fallback = task.tolerance or Tolerance(rtol=0.0, atol=0.0)
    try:
        with stages.stage("loading"):
            prepared = _fitting(task, prepare, memory_bytes)
    except _DoesNotFitError as error:
        return _refused(task, device, fallback, str(error))
    if changed := _changed_kinds(prepared):
        return _refused(task, device, fallback, *changed)
    # Begun here, for it takes seconds until they are ready.
    with compilers(memory.torch_device, at_once=any(map(_is_network, prepared))):
        with threads_for(prepared), keeping_sets(prepared):
            with stages.stage("answers"):
                answers = check_answers(task, prepared, memory)
            is_admitted = answers.is_judgeable if task.admit_degenerate else not answers.refusals
            with stages.stage("value_ranges"):
                value_ranges = find_value_ranges(
                    prepared if is_admitted else (), answers.tolerance, ADMISSION_SEEDS[0]
                )
                smallest = next(iter(value_ranges), None)
                at = next((item for item in prepared if item.workload.name == smallest), None)
                settle_exact(answers, at, value_ranges.get(smallest or "", ()), memory)
            accepted = answers.degeneracies if task.admit_degenerate else []
            found = _Findings(
                refusals=[refusal for refusal in answers.refusals if refusal not in accepted],
                warnings=[*_cast(task, prepared), *_conditioning(answers), *answers.warnings],
            )
            if is_admitted:
                ranges = value_ranges.get(smallest or "", ())
                found.warnings += _unvaried(at or prepared[0], ranges)
            with stages.stage("graph"):
                workloads, programs = [], []
                for item in prepared:
                    program = _program(item, found)
                    workloads.append(_workload_admission(item, program, device, peaks, found))
                    # It holds its inputs and weights.
                    programs.append(None if item.is_large else program)
            with stages.stage("redundancies"):
                redundancies = _redundancies(prepared, programs)
                del program, programs
        timed = [] if found.refusals else [i for i in prepared if not i.workload.held_out]
        with stages.stage("compile"):
            compiled = []
            if COMPILE in baselines:
                compiled = [i for i in timed if _compiles(i, found, note, is_alone=is_alone)]
            elif timed:
                found.warnings.append(
                    f"{COMPILE} is not timed, by the evaluator's setting `baselines`: speed-ups are"
                    " over the others"
                )
    with stages.stage("baselines"):
        measured = {
            item.workload.name: _baselines(
                item,
                device,
                memory,
                found,
                (COMPILE,) * (item in compiled)
                + (GRAPH,) * (GRAPH in baselines and memory.has_graphs),
                seconds=baseline_seconds,
                is_alone=is_alone,
            )
            for item in timed
        }
    untried: tuple[str, ...] = ()
    with stages.stage("generated"), threads_for(prepared), keeping_sets(prepared):
        if not found.refusals:
            sizes = _size_groups(task, prepared)
            workloads += _generated(
                task, sizes, prepared, device, peaks, prepare, answers.tolerance, memory
            )
            workloads += _beside_largest(task, sizes, prepared, workloads, measured, prepare)
            untried = untried_arguments(task, sizes, prepared, workloads)
    workloads = [
        replace(
            workload,
            value_ranges=value_ranges.get(workload.workload, ()),
            baselines=measured.get(workload.workload, ()),
        )
        for workload in workloads
    ]
    return Admission(
        task=task.digest,
        device=device,
        workloads=tuple(workloads),
        tolerance=answers.tolerance,
        refusals=_unique(found.refusals),
        warnings=_unique([*found.warnings, *untried]),
        untried=untried,
        derivation=answers.derivation,
        degeneracies=_unique(accepted),
        rounding=dtype_name(narrowest(item.module.rounding for item in prepared)),
        redundancies=redundancies,
        stages=stages.times(),
    )


def _refused(task: Task, device: DeviceSpec, tolerance: Tolerance, *reasons: str) -> Admission:
    return Admission(
        task=task.digest, device=device, workloads=(), tolerance=tolerance, refusals=reasons
    )


def _unvaried(prepared: PreparedWorkload, ranges: Sequence[ValueRange]) -> tuple[str, ...]:
    """Return a warning where a kernel may rely on the range of an input's whole numbers."""
    if prepared.is_large:
        return ()
    is_tried = any(r.distribution is Distribution.LARGE_INTEGERS and r.is_binding for r in ranges)
    names = unvaried_numbers(prepared, is_tried=is_tried)
    if not names:
        return ()
    return (
        f"{', '.join(names)}: whole numbers of no other size than get_inputs() gives, because they"
        " have an order or the reference is not defined on larger ones: a kernel that relies on"
        " their range goes unnoticed",
    )


def _cast(task: Task, prepared: Sequence[PreparedWorkload]) -> tuple[str, ...]:
    """Return a warning where the sidecar's precision is not what the file has."""
    own = sorted({dtype_name(dtype) for item in prepared for dtype in item.module.cast_from})
    if task.precision is None or not own:
        return ()
    return (f"precision: {task.precision} casts inputs and weights that are {', '.join(own)}",)


def _conditioning(answers: AnswerCheck) -> tuple[str, ...]:
    """Return warnings where the tolerance rests on little, or rounding alone may leave it."""
    if answers.derivation.inexact_because:
        return (
            f"no float64 result ({answers.derivation.inexact_because}): the tolerance rests on the"
            f" reference's own, and is {UNKNOWN:g} times as wide",
        )
    noise = max(answers.derivation.noise, answers.derivation.tf32_noise)
    if noise <= answers.tolerance.rtol or answers.refusals:
        return ()
    return (
        f"the reference is ill-conditioned: reordering alone changes it by {noise:.1g} of its"
        f" scale, and the tolerance is {answers.tolerance.rtol:g}",
    )


def _redundancies(
    prepared: Sequence[PreparedWorkload], programs: Sequence[ExportedProgram | None]
) -> tuple[str, ...]:
    """Return what the smallest workload's results do not need."""
    small = [(item.size_bytes, index) for index, item in enumerate(prepared) if not item.is_large]
    program = programs[min(small)[1]] if small else None
    if program is None:
        return ()
    seeds = (ADMISSION_SEEDS[0], ADMISSION_SEEDS[1])
    return find_redundancies(prepared[min(small)[1]], program, seeds)


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


def admission_sets(item: PreparedWorkload) -> list[InputSet]:
    """Return the input sets that baselines are timed on."""
    # No cache holds what a large workload reads, so one set of it will do.
    seeds = ADMISSION_SEEDS[:1] if item.is_large else ADMISSION_SEEDS
    return [item.input_set(seed) for seed in seeds]


def _size_groups(task: Task, prepared: Sequence[PreparedWorkload]) -> SizeGroups:
    """Return what can change; nothing where the task names held-out workloads."""
    if any(item.workload.held_out for item in prepared):
        return SizeGroups()
    return find_size_groups(task, prepared[0])


def _generated(
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
        item = next((i for i in items if i is not None and not _changed_kinds((first, i))), None)
        if item is not None:
            found = _Findings()  # of sizes that nobody asked for
            facts = _workload_admission(item, _program(item, found), device, peaks, found)
            admitted.append(replace(facts, is_generated=True))
    return admitted


def _beside_largest(
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
        if not _changed_kinds((largest, item)):
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


def _workload_admission(
    item: PreparedWorkload,
    program: ExportedProgram | None,
    device: DeviceSpec,
    peaks: Peaks,
    found: _Findings,
) -> WorkloadAdmission:
    """Return the facts of a workload, without times."""
    graph = _graph(item, program, found)
    cost = count_cost(item.product_flops, graph)
    traffic = count_traffic(item.tensors, graph)
    estimate = arithmetic_estimate(cost, peaks, tf32=item.task.tf32)
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
        baselines=(),
    )


def _program(item: PreparedWorkload, found: _Findings) -> ExportedProgram | None:
    """Return a reference as torch.export follows it, or None, of which a warning tells."""
    try:
        return export_program(*item.shared_set(ADMISSION_SEEDS[0]).callable_model())
    except TaskInvalidError as error:
        found.warnings.append(f"no operator graph: {error.message}")
        return None


def _graph(
    item: PreparedWorkload, program: ExportedProgram | None, found: _Findings
) -> tuple[GraphNode, ...]:
    try:
        return () if program is None else graph_of(program, item.tensors)
    except TaskInvalidError as error:
        found.warnings.append(f"no operator graph: {error.message}")
        return ()


def _is_network(item: PreparedWorkload) -> bool:
    """Return whether torch.compile will make so many kernels that several compilers pay."""
    count = sum(tensor.role is TensorRole.PARAMETER for tensor in item.tensors)
    return count >= _NETWORK_PARAMETERS


def _leave_out(error: BaselineFailedError, found: _Findings, *, is_alone: bool) -> None:
    """Warn of a baseline that does not work.

    An admission is kept for good: what others left no memory for is no reason to be without it.
    """
    if not is_alone and isinstance(error.__cause__, torch.OutOfMemoryError):
        raise error.__cause__ from None
    found.warnings.append(str(error))


def _compiles(
    item: PreparedWorkload, found: _Findings, note: Callable[[Fact], None], *, is_alone: bool
) -> bool:
    """Compile a workload's reference; return whether that works."""
    try:
        seconds = compile_seconds(admission_sets(item))
    except BaselineFailedError as error:
        _leave_out(error, found, is_alone=is_alone)
        return False
    name = f"torch.compile of {item.task.name}, {item.workload.name}"
    note(Fact(name=name, value=f"{seconds:.1f} s to compile"))
    return True


def _baselines(
    item: PreparedWorkload,
    device: DeviceSpec,
    memory: JudgeMemory,
    found: _Findings,
    others: tuple[str, ...],
    *,
    seconds: float,
    is_alone: bool,
) -> tuple[Baseline, ...]:
    settings = MeasurementSettings(seconds=seconds, flush_bytes=device.flush_bytes)
    sets = admission_sets(item)
    redrawn = redrawn_tensors(item, memory)
    baselines = [settled_baseline(EAGER, sets, settings, memory, redrawn)]
    for name in others:
        try:
            baselines.append(settled_baseline(name, sets, settings, memory, redrawn))
        except BaselineFailedError as error:
            _leave_out(error, found, is_alone=is_alone)
    return tuple(baselines)


def _unique(messages: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(messages))
