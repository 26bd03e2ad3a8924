"""Which inputs may have other values: neither constants of the task, nor those no seed changes."""

from collections.abc import Callable

import torch

from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload


def free_inputs(prepared: PreparedWorkload, input_set: InputSet) -> tuple[int, ...]:
    """Return the free inputs of a set, by index."""
    named = zip(input_set.arguments.names, prepared.fixed_inputs, strict=True)
    return tuple(
        index
        for index, (name, is_fixed) in enumerate(named)
        if name not in prepared.task.constants and not is_fixed
    )


def with_free_inputs(
    prepared: PreparedWorkload,
    input_set: InputSet,
    change: Callable[[int, torch.Tensor], torch.Tensor],
) -> InputSet:
    """Return a set with other free inputs; itself where each of them stays.

    Args:
        prepared: The workload.
        input_set: Inputs of it.
        change: Gives an input's new values, from its index and the old ones.
    """
    inputs = list(input_set.inputs)
    for index in free_inputs(prepared, input_set):
        inputs[index] = change(index, inputs[index])
    return input_set.with_inputs(inputs)
