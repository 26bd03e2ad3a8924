"""Whether a task can be judged on sizes that it does not name.

Sizes that a module does not run with, or at which it is too large or too ill-conditioned, are left
out; the task is not refused for them.
"""

from collections.abc import Callable
from typing import Final

import torch

from evaluator_svc.judge.admission.check_trial import refusal_of_own
from evaluator_svc.judge.admission.screening import screen
from evaluator_svc.judge.admission.tolerance import least, measure
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.parameters import parameter_rules
from evaluator_svc.judge.inputs.prepared_workload import (
    PREPARATION_SEED,
    PreparedWorkload,
    keeping_sets,
)
from evaluator_svc.judge.memory.judge_memory import JudgeMemory
from evaluator_svc.judge.reference.task_module import TaskModule
from kernel_foundry.domain.admission import TensorRole
from kernel_foundry.domain.task import Task, Tolerance, Workload
from kernel_foundry.errors import TaskInvalidError

_MOST_BYTES: Final = 1 << 24
"""Of inputs, parameters and outputs: judging them is to cost next to nothing."""

_SEED: Final = 101


def usable(
    task: Task,
    workload: Workload,
    prepare: Callable[[Workload], PreparedWorkload],
    tolerance: Tolerance,
    memory: JudgeMemory,
) -> PreparedWorkload | None:
    """Return a workload, loaded; None where candidates cannot be judged on it."""
    try:
        is_on_host = memory.torch_device.type == "cpu"
        if not _is_small(task, workload) or not (is_on_host or _runs_on_host(task, workload)):
            return None
        item = prepare(workload)
        if item.sizes.set_bytes > _MOST_BYTES:
            return None
        with keeping_sets([item]):
            return item if _is_judgeable(item, tolerance, memory) else None
    except TaskInvalidError:
        return None


def _is_judgeable(item: PreparedWorkload, tolerance: Tolerance, memory: JudgeMemory) -> bool:
    is_derived = item.task.tolerance is None
    drawn, where = item.shared_set(_SEED), item.workload.name
    found = screen([lambda: drawn], tolerance, is_scaled=is_derived, where=where, memory=memory)
    # Those of another seed, which loading ran it on.
    outputs = [tensor.shape for tensor in item.tensors if tensor.role is TensorRole.OUTPUT]
    if found.refusals or found.warnings or outputs != [tuple(o.shape) for o in drawn.expected()]:
        return False
    if not item.task.compare:
        return not refusal_of_own(drawn)
    if not is_derived:
        return True
    return least(measure([drawn], enough=tolerance.rtol)) <= tolerance.rtol


def _is_small(task: Task, workload: Workload) -> bool:
    """Return whether the inputs are, by shapes alone."""
    shapes = TaskModule(task, workload, torch.device("meta"))
    try:
        sizes = [v.nbytes for v in shapes.input_shapes() if isinstance(v, torch.Tensor)]
    finally:
        shapes.close()
    return sum(sizes) <= _MOST_BYTES


def _runs_on_host(task: Task, workload: Workload) -> bool:
    """Return whether the reference runs at all; a GPU's own assertion would end the judge."""
    host = TaskModule(task, workload, torch.device("cpu"))
    try:
        InputSet(host, parameter_rules(host.model), PREPARATION_SEED).run()
    finally:
        host.close()
    return True
