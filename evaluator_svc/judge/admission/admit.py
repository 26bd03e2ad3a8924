"""Admission of a task: everything that is to be known before money is spent on it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import torch
from torch.export import ExportedProgram

from evaluator_svc.baseline_names import COMPILE, COMPILED, EAGER, GRAPH
from evaluator_svc.judge.admission.answer_check import (
    ADMISSION_SEEDS,
    AnswerCheck,
    check_answers,
    settle_exact,
)
from evaluator_svc.judge.admission.check_trial import try_check
from evaluator_svc.judge.admission.generated_admissions import (
    admissions_of_other_sizes,
    changeable_sizes,
    changed_kinds,
)
from evaluator_svc.judge.admission.stages import Stages
from evaluator_svc.judge.admission.untried import untried_arguments
from evaluator_svc.judge.admission.value_ranges import find_value_ranges
from evaluator_svc.judge.admission.workload_admission import exported_program, workload_admission
from evaluator_svc.judge.baselines import (
    BaselineFailedError,
    compile_seconds,
    settled_baseline,
)
from evaluator_svc.judge.compilers import compilers
from evaluator_svc.judge.graph.cancelling_products import products_cancel
from evaluator_svc.judge.graph.mode import ignores_mode
from evaluator_svc.judge.graph.redundancy import find_redundancies
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload, keeping_sets
from evaluator_svc.judge.memory.judge_memory import JudgeMemory
from evaluator_svc.judge.reference.formats import narrowest
from evaluator_svc.judge.reference.name_table import dtype_name
from evaluator_svc.judge.reference.task_module import TaskModule
from evaluator_svc.judge.tensors.rounding_noise import UNKNOWN
from evaluator_svc.judge.threads import threads_for
from evaluator_svc.judge.timed_calls.call_inputs import redrawn_tensors
from evaluator_svc.judge.unusual_values.unusual_integers import unvaried_numbers
from evaluator_svc.messages.measurement import MeasurementSettings
from evaluator_svc.sizes.memory_needs import lean_need, refusal
from kernel_foundry.domain.admission import (
    Admission,
    Distribution,
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
    if changed := changed_kinds(prepared):
        return _refused(task, device, fallback, *changed)
    with compilers(
        memory.torch_device,
        are_wanted=any(name in COMPILED for name in baselines),
        at_once=any(map(_is_network, prepared)),
    ) as wait_for_compilers:
        with threads_for(prepared), keeping_sets(prepared):
            with stages.stage("answers"):
                answers = check_answers(task, prepared, memory)
                if answers.is_judgeable:
                    answers.take(try_check(task, prepared, ADMISSION_SEEDS))
            is_admitted = answers.is_judgeable if task.admit_degenerate else not answers.refusals
            with stages.stage("value_ranges"):
                value_ranges = find_value_ranges(
                    prepared if is_admitted else (),
                    answers.tolerance,
                    ADMISSION_SEEDS[0],
                )
                smallest = next(iter(value_ranges), None)
                at = next((i for i in prepared if i.workload.name == smallest), None)
                settle_exact(answers, at, value_ranges.get(smallest or "", ()), memory)
            accepted = answers.degeneracies if task.admit_degenerate else []
            found = _Findings(
                refusals=[refusal for refusal in answers.refusals if refusal not in accepted],
                warnings=[*_cast(task, prepared), *_conditioning(answers), *answers.warnings],
            )
            if is_admitted and task.compare:
                found.warnings += _unvaried(at or prepared[0], value_ranges.get(smallest or "", ()))
            with stages.stage("graph"):
                workloads, programs = [], []
                for item in prepared:
                    program = exported_program(item, found.warnings)
                    workloads.append(
                        workload_admission(item, program, device, peaks, found.warnings)
                    )
                    # It holds its inputs and weights.
                    programs.append(None if item.is_large else program)
                is_mode_ignored = _ignores_mode(prepared, workloads)
                is_cancelling = _products_cancel(prepared)
            with stages.stage("redundancies"):
                # They take the reference apart, run after run: nothing for a task that is refused.
                redundancies = () if found.refusals else _redundancies(prepared, programs)
                del program, programs
        timed = [] if found.refusals else [i for i in prepared if not i.workload.held_out]
        with stages.stage("compile"):
            if timed:
                wait_for_compilers()
            compiled = {
                item.workload.name: tuple(
                    name
                    for name in COMPILED
                    if name in baselines
                    and _compiles(name, item, len(timed), found, note, is_alone=is_alone)
                )
                for item in timed
            }
            if timed and COMPILE not in baselines:
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
                compiled[item.workload.name]
                + (GRAPH,) * (GRAPH in baselines and memory.has_graphs),
                seconds=baseline_seconds,
                is_alone=is_alone,
            )
            for item in timed
        }
    untried: tuple[str, ...] = ()
    with stages.stage("generated"), threads_for(prepared), keeping_sets(prepared):
        if not found.refusals:
            sizes = changeable_sizes(task, prepared)
            workloads += admissions_of_other_sizes(
                task,
                sizes,
                prepared,
                workloads,
                measured,
                value_ranges.get(smallest or "", ()),
                device=device,
                peaks=peaks,
                prepare=prepare,
                tolerance=answers.tolerance,
                memory=memory,
            )
            untried = untried_arguments(task, sizes, prepared, workloads)
    workloads = [
        replace(
            workload,
            value_ranges=value_ranges.get(workload.workload, workload.value_ranges),
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
        ignores_mode=is_mode_ignored,
        products_cancel=is_cancelling,
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


def _products_cancel(prepared: Sequence[PreparedWorkload]) -> bool:
    smallest = min(prepared, key=lambda item: item.size_bytes)
    return products_cancel(smallest.shared_set(ADMISSION_SEEDS[0]))


def _ignores_mode(
    prepared: Sequence[PreparedWorkload], workloads: Sequence[WorkloadAdmission]
) -> bool:
    """Return whether the smallest workload's module does; False where it is large."""
    small = [(item.size_bytes, index) for index, item in enumerate(prepared) if not item.is_large]
    if not small:
        return False
    index = min(small)[1]
    model, values = prepared[index].shared_set(ADMISSION_SEEDS[0]).callable_model()
    return ignores_mode(model, values, prepared[index].tensors, workloads[index].graph)


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


def admission_sets(item: PreparedWorkload) -> list[InputSet]:
    """Return the input sets that baselines are timed on."""
    # No cache holds what a large workload reads, so one set of it will do.
    seeds = ADMISSION_SEEDS[:1] if item.is_large else ADMISSION_SEEDS
    return [item.input_set(seed) for seed in seeds]


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
    name: str,
    item: PreparedWorkload,
    workload_count: int,
    found: _Findings,
    note: Callable[[Fact], None],
    *,
    is_alone: bool,
) -> bool:
    """Compile a workload's reference as a baseline wants it; return whether that works."""
    try:
        seconds = compile_seconds(name, admission_sets(item), workload_count=workload_count)
    except BaselineFailedError as error:
        _leave_out(error, found, is_alone=is_alone)
        return False
    what = f"{name} of {item.task.name}, {item.workload.name}"
    note(Fact(name=what, value=f"{seconds:.1f} s to compile"))
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
