"""How a reference is constructed and called, as literals: all that a process of others is told.

It gets no text of the reference and no value of a tensor this way.
"""

import ast
from typing import Any

from evaluator_svc.judge.inputs.prepared_workload import PREPARATION_SEED, PreparedWorkload
from evaluator_svc.messages.foreign import CallForm
from kernel_foundry.errors import TaskInvalidError


def call_form(prepared: PreparedWorkload) -> CallForm:
    """Return how a workload's reference is constructed and called.

    Raises:
        TaskInvalidError: a value is no literal of Python.
    """
    module = prepared.module
    arguments = prepared.shared_set(PREPARATION_SEED).arguments
    return CallForm(
        constructor=_literal("get_init_inputs()", module.init_values()),
        arguments=_literal("get_inputs()", arguments.places),
        training=module.task.training,
        cast="" if module.cast is None else str(module.cast).removeprefix("torch."),
    )


def _literal(what: str, values: list[Any]) -> str:
    text = repr(values)
    try:
        is_same = ast.literal_eval(text) == values
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        is_same = False
    if not is_same:
        raise TaskInvalidError(
            f"{what} gives something else than numbers, strings, lists and tensors as inputs, which"
            " a foreign kernel cannot be given"
        )
    return text
