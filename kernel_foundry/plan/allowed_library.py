"""Which library calls a task allows: those that it names, or the kind that its reference makes.

The calls themselves are in `library.py`.
"""

from collections.abc import Iterable
from typing import Final

from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.plan.library import LIBRARY_OPS
from kernel_foundry.shown_value import shown

NO_LIBRARY: Final = "none"
"""As the only name in `Task.library_ops`: no calls at all."""

_PRODUCTS: Final = ("linear", "matmul", "mm", "bmm", "addmm", "baddbmm")
_OTHER_NAMES: Final = {
    "einsum": _PRODUCTS,
    "mv": _PRODUCTS,
    "addmv": _PRODUCTS,
    "bilinear": _PRODUCTS,
    "lstm": _PRODUCTS,
    "gru": _PRODUCTS,
    "rnn_tanh": _PRODUCTS,
    "rnn_relu": _PRODUCTS,
    "scaled_dot_product_attention": ("scaled_dot_product_attention", *_PRODUCTS),
    **dict.fromkeys(_PRODUCTS, _PRODUCTS),
}
"""Operators of references that are, or are made of, library calls of another name too."""


def check_library_ops(task: Task) -> None:
    """Refuse a task that allows an unknown library call.

    Raises:
        InvalidArgumentError: it says which, and which there are.
    """
    for name in task.library_ops:
        if name not in (NO_LIBRARY, *LIBRARY_OPS):
            raise InvalidArgumentError(
                f"task.library_ops: unknown {shown(name)}; known are {', '.join(LIBRARY_OPS)}, and"
                f" {NO_LIBRARY} alone",
                field="task.library_ops",
            )


def allowed_library_ops(task: Task, admission: Admission | None) -> tuple[str, ...]:
    """Return the names of `LIBRARY_OPS` that a plan for `task` may call.

    A task that names none allows what its reference calls itself: all products where there is one,
    and convolutions, pooling and attention by their names.

    Args:
        task: The task.
        admission: Its admission; None: not known, so that whatever may be allowed is.
    """
    if task.library_ops:
        return tuple(name for name in task.library_ops if name != NO_LIBRARY)
    if admission is None:
        return tuple(LIBRARY_OPS)
    called = {node.op for workload in admission.workloads for node in workload.graph}
    allowed = {name for op in called for name in _calls(op)}
    return tuple(name for name in LIBRARY_OPS if name in allowed)


def _calls(op: str) -> Iterable[str]:
    """Return the library calls that an ATen overload such as "aten.conv2d.default" stands for."""
    name = op.removeprefix("aten.").partition(".")[0]
    return _OTHER_NAMES.get(name, (name,))
