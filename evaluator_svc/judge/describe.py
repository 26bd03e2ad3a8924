"""What a launch plan may name in a task, from shapes alone: no device, hardly any memory.

The reference runs on torch's meta device; one that needs real values runs on the CPU.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import nn

from evaluator_svc.judge.graph.graph import export_graph
from evaluator_svc.judge.inputs.input_set import flatten_outputs
from evaluator_svc.judge.reference.arguments import read_arguments
from evaluator_svc.judge.reference.name_table import named_scalars, named_tensors
from evaluator_svc.judge.reference.task_module import TaskModule
from evaluator_svc.messages.judge import DescribeReply
from evaluator_svc.messages.locked import WorkloadNames
from kernel_foundry.domain.task import Task, Workload
from kernel_foundry.errors import TaskInvalidError

_SEED: Final = 7
"""Values do not matter here."""

_NO_OPERATORS: Final = ("placeholder", "output", "get_attr")
"""Nodes of the graph that compute nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shapes:
    """A workload's reference without values."""

    model: nn.Module
    values: Sequence[Any]
    names: WorkloadNames


def describe_task(task: Task, *, shapes_alone: bool = False) -> DescribeReply:
    """Return the name tables of all workloads, and the number of the reference's operators.

    Args:
        task: The task.
        shapes_alone: Whether to fail where shapes follow from values: on a CPU a reference that
            was written for a GPU may take minutes.

    Raises:
        TaskInvalidError: the reference cannot be loaded or run.
    """
    shapes = [_shapes(task, workload, shapes_alone=shapes_alone) for workload in task.workloads]
    return DescribeReply(
        workloads=tuple(item.names for item in shapes),
        reference_op_count=_operator_count(shapes[0]),
    )


def _shapes(task: Task, workload: Workload, *, shapes_alone: bool) -> _Shapes:
    try:
        return _shapes_on(torch.device("meta"), task, workload)
    except TaskInvalidError:
        if shapes_alone:
            raise
        return _shapes_on(torch.device("cpu"), task, workload)


def _shapes_on(device: torch.device, task: Task, workload: Workload) -> _Shapes:
    module = TaskModule(task, workload, device)
    try:
        values = module.input_values(_SEED)
        arguments = read_arguments(module.model, values)
        with module.user_code("forward()"), torch.no_grad():
            outputs = list(flatten_outputs(module.model(*values)))
        tensors = named_tensors(module.model, arguments, outputs)
        names = WorkloadNames(
            workload=workload.name,
            tensors=tensors,
            scalars=named_scalars(module.model, arguments, tensors),
        )
        return _Shapes(model=module.model, values=values, names=names)
    finally:
        module.close()


def _operator_count(shapes: _Shapes) -> int:
    """Return the nodes that compute, 0 when the reference has no graph."""
    try:
        graph = export_graph(shapes.model, shapes.values, shapes.names.tensors)
    except TaskInvalidError:
        return 0
    return sum(node.op not in _NO_OPERATORS for node in graph)
