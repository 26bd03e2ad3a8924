"""A candidate's plan bound to a workload, and its summary; in builder and runner alike."""

import ast
import math
from collections.abc import Sequence

from evaluator_svc.messages.locked import WorkloadNames
from evaluator_svc.messages.runner import BoundWorkload, KernelGrid
from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.evaluation import Setting
from kernel_foundry.plan.bind import bind
from kernel_foundry.plan.configuration import chosen_values, constants
from kernel_foundry.plan.from_admission import device_limits, name_table
from kernel_foundry.plan.sequence import (
    BufferArgument,
    Launch,
    LaunchSequence,
    LibraryCall,
    Operand,
    Step,
    TensorOperand,
)
from kernel_foundry.plan.signature import kernels
from kernel_foundry.plan.tree import Plan


def bind_workload(
    plan: Plan,
    workload: WorkloadNames,
    *,
    source: KernelSource,
    configuration: tuple[Setting, ...],
    device: DeviceSpec,
    library_ops: tuple[str, ...],
) -> LaunchSequence:
    """Return what the plan launches for a workload.

    Raises:
        PlanError: the plan does not fit.
    """
    values = chosen_values(plan, configuration)
    table = name_table(workload.tensors, workload.scalars)
    limits = device_limits(device)
    language = source.language.value
    macros = {**values, **constants(plan, table, values, limits)}
    return bind(
        plan,
        kernels(source.device_code, language, macros),
        names=table,
        configuration=values,
        device=limits,
        language=language,
        library_ops=library_ops,
    )


def describe(workload: str, sequence: LaunchSequence) -> BoundWorkload:
    """Return the summary of a bound plan, for the supervisor."""
    launches = [step for step in sequence.steps if isinstance(step, Launch)]
    moved_bytes, moved_count = _moved_by_prepare(sequence)
    main = max(launches, key=lambda launch: math.prod((*launch.grid, *launch.block)), default=None)
    return BoundWorkload(
        workload=workload,
        launch_count=len(launches),
        group_count=0 if main is None else math.prod(main.grid),
        group_size=0 if main is None else math.prod(main.block),
        scratch_count=sum(buffer.kind == "scratch" for buffer in sequence.buffers),
        scratch_bytes=sequence.scratch_bytes,
        kernels=sequence.kernels,
        library_call_count=sum(isinstance(step, LibraryCall) for step in sequence.steps),
        prepared_bytes=sequence.prepared_bytes,
        prepare_traffic_bytes=moved_bytes,
        prepared_count=moved_count,
        result_bytes=sum(b.size_bytes for b in sequence.buffers if b.kind == "result"),
        main_kernel="" if main is None else main.kernel,
        main_shared_bytes=0 if main is None else main.shared_bytes,
        grids=_grids(sequence),
    )


def _grids(sequence: LaunchSequence) -> tuple[KernelGrid, ...]:
    steps = (*sequence.prepare, *sequence.steps)
    most: dict[str, tuple[int, int, int]] = {}
    for launch in (step for step in steps if isinstance(step, Launch)):
        x, y, z = most.get(launch.kernel, (0, 0, 0))
        own_x, own_y, own_z = launch.grid
        most[launch.kernel] = (max(x, own_x), max(y, own_y), max(z, own_z))
    return tuple(KernelGrid(kernel=kernel, groups=groups) for kernel, groups in most.items())


def _moved_by_prepare(sequence: LaunchSequence) -> tuple[int, int]:
    """Return the bytes that a change of layout moves, and how many tensors it makes.

    Of what `prepare` names no more counts than what it makes for `launch`, and the other way round:
    a tensor that is named and never read would else pay for work on another.
    """
    named = _named(sequence, sequence.prepare, "tensor")
    made = _named(sequence, sequence.prepare, "prepared") & _named(
        sequence, sequence.steps, "prepared"
    )
    read_bytes, made_bytes = (
        sum(sequence.buffers[index].size_bytes for index in indices) for indices in (named, made)
    )
    return 2 * min(read_bytes, made_bytes), len(made)


def _named(sequence: LaunchSequence, steps: Sequence[Step], kind: str) -> set[int]:
    """Return the positions of buffers of a kind that steps name as operands."""
    touched: set[int] = set()
    for step in steps:
        if isinstance(step, Launch):
            touched |= {a.index for a in step.arguments if isinstance(a, BufferArgument)}
        elif isinstance(step, LibraryCall):
            operands = (*step.arguments, *(operand for _, operand in step.keywords))
            touched |= {step.output, *_tensors_among(operands)}
    return {index for index in touched if sequence.buffers[index].kind == kind}


def _tensors_among(operands: tuple[Operand, ...]) -> set[int]:
    """Return the positions of the tensors among a library call's operands."""
    found: set[int] = set()
    for operand in operands:
        if isinstance(operand, TensorOperand):
            found.add(operand.index)
        elif isinstance(operand, tuple):
            found |= _tensors_among(operand)
    return found


def uses_library(plan: Plan) -> bool:
    """Return whether a parsed plan makes library calls, in `prepare` or elsewhere."""
    return any(
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "ops"
        for node in ast.walk(ast.parse(plan.text))
    )
