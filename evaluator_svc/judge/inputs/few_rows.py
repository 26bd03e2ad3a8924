"""A set of a few rows, on which many trials of a reference that combines nothing are cheap."""

from typing import Final

from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PREPARATION_SEED, PreparedWorkload
from kernel_foundry.errors import TaskInvalidError

_ELEMENTS: Final = 1 << 12
"""About as many of the largest input, at least one row of it."""


def few_rows(prepared: PreparedWorkload) -> InputSet:
    """Return an ordinary set with the first rows alone of all inputs that have as many.

    The whole set where the reference does not take that.
    """
    ordinary = prepared.shared_set(PREPARATION_SEED)
    largest = max(ordinary.inputs, key=lambda tensor: tensor.numel(), default=None)
    if largest is None or largest.ndim == 0 or largest.numel() <= _ELEMENTS:
        return ordinary
    count = max(_ELEMENTS * len(largest) // largest.numel(), 1)
    few = ordinary.with_inputs(
        [
            tensor[:count].clone() if tensor.ndim and len(tensor) == len(largest) else tensor
            for tensor in ordinary.inputs
        ]
    )
    try:
        few.expected()
    except TaskInvalidError:
        return ordinary
    return few
