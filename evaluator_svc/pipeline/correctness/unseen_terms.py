"""Products whose errors no draw can show: where many are averaged into one output, or never cancel.

Rounding by chance leaves a mean of a million squares as exact as float32, whatever the inputs are;
a sum of positive terms hides nearly as much, and where the reference takes no others a candidate
can tell the draws that would show it.
"""

import math
from typing import Final

from evaluator_svc.languages import backend_of
from evaluator_svc.messages.products import PRODUCTS
from evaluator_svc.policy import ObjectFacts
from evaluator_svc.policy.number_formats import INT8
from kernel_foundry.domain.admission import Admission, Distribution, TensorRole, WorkloadAdmission
from kernel_foundry.domain.task import Task

_AVERAGING: Final = PRODUCTS | {"scaled_dot_product_attention"}

_AVERAGED: Final = 64
"""Elements of products for each output, from which their errors are three bits smaller in it."""

_WIDE: Final = ("float64",)


def unsplit_products(task: Task, admission: Admission, facts: ObjectFacts) -> tuple[str, ...]:
    """Return the narrow formats of a float32 task's products that are not seen to be split ones.

    Empty where the task's own formats are narrow, or TF32 is allowed.
    """
    allows_tf32 = task.tf32 and backend_of(admission.device.language).has_tf32
    if admission.is_narrow or allows_tf32 or facts.products_of_a_step:
        return ()
    products = {*facts.matrix_formats, *(name for name in facts.formats if name == INT8)}
    return tuple(sorted(products.difference(_WIDE)))


def hidden_because(admission: Admission, workload: str) -> str:
    """Return why the errors of a workload's products do not show in its outputs; empty: they do."""
    here = next((w for w in admission.workloads if w.workload == workload), None)
    nodes = here.graph if here is not None else ()
    products = [math.prod(n.shape) for n in nodes if _base(n.op) in _AVERAGING]
    if here is None or not products:
        return ""
    outputs = sum(math.prod(t.shape) for t in here.tensors if t.role is TensorRole.OUTPUT)
    if max(products) >= _AVERAGED * outputs:
        return f"{max(products)} products are averaged into {outputs} outputs"
    if not admission.products_cancel and not any(map(_cancels, admission.workloads)):
        return "the reference takes no inputs on which sums cancel"
    return ""


def _cancels(workload: WorkloadAdmission) -> bool:
    return any(r.is_binding and r.distribution is Distribution.SIGNS for r in workload.value_ranges)


def _base(op: str) -> str:
    return op.split(".")[1] if op.count(".") else op
