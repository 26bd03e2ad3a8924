"""The task as prompts print it: mode, precision, tolerance, and workloads but the held-out ones."""

import math
from dataclasses import dataclass
from typing import Final

from generator_svc.prompting.units import bytes_text, time_text
from kernel_foundry.domain.admission import Admission, TensorRole, WorkloadAdmission
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.task import Task, Tolerance
from kernel_foundry.plan.dtypes import DTYPE_BYTES
from kernel_foundry.plan.from_admission import name_table

MAX_WORKLOADS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadView:
    """One workload that the model may see."""

    name: str
    names: str
    """The name table; of the second and later ones only the lines that differ from the first."""
    flops_text: str
    limits_text: str
    baselines_text: str


def right_text(task: Task, tolerance: Tolerance) -> str:
    """Return the condition for right outputs: their bounds, and the task's own check."""
    check = f"the reference's function `{task.check}(inputs, expected, actual)`"
    if not task.compare:
        return (
            f"Outputs are right when {check} returns None or True for them: they need not equal the"
            " reference's. Every element has to be written."
        )
    text = f"An element is right when its error is at most {_tolerance_text(task, tolerance)}."
    return f"{text} Besides, {check} has to return None or True." if task.check else text


def _tolerance_text(task: Task, tolerance: Tolerance) -> str:
    """Return the bound of an element's error, what its scale is, and bits that are asked for."""
    bound = f"{tolerance.atol:g} * scale + {tolerance.rtol:g} * |expected|"
    if task.tolerance is not None:
        scale = "with scale = 1"
    else:
        scale = (
            "where scale is the root mean square of the expected values in the element's row (last"
            " axis; of its image, the axes behind the first two, where there are four or more)"
        )
    if tolerance.output_shares:
        scale += "; of these bounds each output has its own share: " + ", ".join(
            f"output {i} {_bound_share(tolerance, i)}" for i in range(len(tolerance.output_shares))
        )
    bits = f"; all outputs need {task.least_bits:g} effective bits" if task.least_bits else ""
    return f"{bound}, {scale}{bits}"


def _bound_share(tolerance: Tolerance, output: int) -> str:
    if tolerance.is_exact(output):
        return "none (it holds values of inputs, and has to be equal)"
    return f"{tolerance.output_shares[output]:.2g}"


def mode_text(task: Task) -> str:
    """Return which mode the reference runs in, and what that means for its layers."""
    if task.training:
        return (
            "The reference runs in training mode, without gradients: batch normalisation uses the"
            " mean and variance of the batch at hand, not running_mean and running_var, which need"
            " not be updated."
        )
    return (
        "The reference runs in evaluation mode: batch normalisation uses running_mean and"
        " running_var, and dropout does nothing."
    )


_LOSSES: Final = ("cross_entropy_loss", "nll_loss")
"""Operators whose labels may say that a row is to be ignored."""


def precision_text(task: Task, admission: Admission) -> str:
    """Return the formats of inputs and weights, and how exactly products have to be computed."""
    dtypes = {
        tensor.dtype: None
        for workload in admission.workloads[:1]
        for tensor in workload.tensors
        if tensor.role is not TensorRole.OUTPUT and "float" in tensor.dtype
    }
    text = f"Inputs and weights are {' and '.join(dtypes) or 'no floating-point numbers'}."
    if task.constants:
        names = ", ".join(task.constants)
        text += f" Constants of the task, whose values a kernel may rely on: {names}."
    if any(
        loss in node.op for w in admission.workloads[:1] for node in w.graph for loss in _LOSSES
    ):
        text += (
            " Labels that equal the loss's ignore_index (-100 unless the reference says otherwise)"
            " are left out, as in PyTorch, and kernels are tried on some."
        )
    if task.tf32 and admission.device.language is Language.CUDA:
        text += (
            " Matrix products and convolutions may round their operands to TF32 (tensor cores,"
            " sums in float32), as the PyTorch that you are timed against does."
        )
    return text


def workload_views(admission: Admission) -> tuple[WorkloadView, ...]:
    """Return the first few workloads that are not held out."""
    shown = [w for w in admission.workloads if not w.held_out][:MAX_WORKLOADS]
    views: list[WorkloadView] = []
    for workload in shown:
        names = name_table(workload.tensors, workload.scalars).render()
        if views:
            names = _lines_not_in(names, views[0].names)
        views.append(_workload_view(workload, names, admission.device.cache_bytes))
    return tuple(views)


def _lines_not_in(text: str, known: str) -> str:
    """Return the lines of `text` that are not in `known`, whatever the width of columns."""
    known_lines = {tuple(line.split()) for line in known.splitlines()}
    return "\n".join(line for line in text.splitlines() if tuple(line.split()) not in known_lines)


def _counted_bytes(workload: WorkloadAdmission, cache_bytes: int) -> int:
    """Return the compulsory bytes of the traffic bound: not the outputs that a cache may keep."""
    written = sum(
        math.prod(tensor.shape) * DTYPE_BYTES[tensor.dtype]
        for tensor in workload.tensors
        if tensor.role is TensorRole.OUTPUT
    )
    return max(workload.minimal_bytes - min(written, cache_bytes), 0)


def _workload_view(workload: WorkloadAdmission, names: str, cache_bytes: int) -> WorkloadView:
    counted = bytes_text(_counted_bytes(workload, cache_bytes))
    kept = (
        ""
        if counted == bytes_text(workload.minimal_bytes)
        else (f" (counts {counted}: the rest are outputs that may stay in a cache)")
    )
    baselines = [f"{b.name} {time_text(b.timing.median_ns)}" for b in workload.baselines]
    return WorkloadView(
        name=workload.workload,
        names=names,
        flops_text=f"{workload.flops / 1e6:.1f} MFLOP, {bytes_text(workload.minimal_bytes)} at"
        " least",
        limits_text=f"traffic bound {time_text(workload.traffic_bound_ns)}{kept}, "
        "arithmetic estimate "
        f"{time_text(workload.arithmetic_estimate_ns)} ({workload.arithmetic_unit})",
        baselines_text="".join(f"; {text}" for text in baselines),
    )
