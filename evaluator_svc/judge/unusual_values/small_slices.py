"""Rows that are small as a whole, and small variances: beside them a small number added counts.

What a reference adds to a variance or has for the least length is nothing beside ordinary values,
so that a kernel may leave it out or add it elsewhere. Inputs become small only where the results
do not: a product of small values is small, and its rounding no matter.
"""

from functools import partial
from typing import Final

import torch

from evaluator_svc.judge.inputs.defined_values import SmallSlices
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PREPARATION_SEED, PreparedWorkload
from evaluator_svc.judge.tensors.tensor_parts import (
    by_block,
    generator_of_stream,
    root_mean_square,
)
from evaluator_svc.judge.unusual_values.slices import with_slices
from kernel_foundry.errors import TaskInvalidError

_LEAST_EXPONENT: Final = {
    torch.float16: -6.0,
    torch.bfloat16: -24.0,
    torch.float32: -24.0,
    torch.float64: -24.0,
}
"""Binary logarithm of the smallest factor: squares of squares are still numbers, and float16 keeps
its bits."""
_TRIED_FACTOR: Final = 2.0**-4
"""Of a set of small inputs whose results are looked at…"""
_KEPT_SHARE: Final = 0.5
"""…and what is left at least of the size of one."""
_ZERO_SHARE: Final = 0.125
"""Of variances: those of channels that never fire."""
_STREAM: Final = 0x2F0B_4472_51D6_8CA7
"""Tells these draws from those of the inputs."""


def with_small_slices(
    prepared: PreparedWorkload, input_set: InputSet, slices: SmallSlices
) -> InputSet:
    """Return a set with small slices of inputs, or small variances; itself where none has any."""
    constants, fixed = prepared.task.constants, prepared.fixed_inputs
    inputs = list(input_set.inputs)
    for index, (name, tensor) in enumerate(zip(input_set.arguments.names, inputs, strict=True)):
        least = _LEAST_EXPONENT.get(tensor.dtype)
        if slices.of_inputs and least is not None and name not in constants and not fixed[index]:
            small = partial(_small, least=least)
            is_across = prepared.traits.is_across(input_set.seed)
            inputs[index] = with_slices(tensor, small, is_across=is_across)
    changed = input_set.with_inputs(inputs)
    if not slices.of_variances:
        return changed
    generator = generator_of_stream(_STREAM, input_set.seed, prepared.module.device)
    state = dict(input_set.state)
    for rule in prepared.rules:
        least = _LEAST_EXPONENT.get(rule.base.dtype)
        if rule.is_free and rule.keeps_sign and least is not None:
            state[rule.path] = _small_variances(state[rule.path], least, generator)
    return changed.with_values(changed.inputs, state)


def small_slices(prepared: PreparedWorkload) -> SmallSlices:
    """Return what may be small: inputs whose results keep their size, variances if there are any.

    Of inputs a set is tried that is smaller as a whole.
    """
    has_variances = any(rule.is_free and rule.keeps_sign for rule in prepared.rules)
    ordinary = prepared.shared_set(PREPARATION_SEED)
    smaller = [
        by_block(tensor, lambda values: values * _TRIED_FACTOR)
        if tensor.dtype in _LEAST_EXPONENT and not prepared.fixed_inputs[index]
        else tensor
        for index, tensor in enumerate(ordinary.inputs)
    ]
    try:
        pairs = list(zip(ordinary.own(), ordinary.with_inputs(smaller).own(), strict=True))
    except TaskInvalidError:
        pairs = []
    of_inputs = any(_keeps_size(one, other) for one, other in pairs)
    return SmallSlices(of_inputs=of_inputs, of_variances=has_variances)


def _keeps_size(one: torch.Tensor, other: torch.Tensor) -> bool:
    if not one.is_floating_point() or not one.numel():
        return False
    return root_mean_square(other) >= _KEPT_SHARE * root_mean_square(one) > 0.0


def _small(old: torch.Tensor, drawn: torch.Tensor, *, least: float) -> torch.Tensor:
    # A power of two: mantissas stay.
    return old * torch.exp2((least * drawn).round()).to(old.dtype)


def _small_variances(
    tensor: torch.Tensor, least: float, generator: torch.Generator
) -> torch.Tensor:
    drawn = torch.rand(tensor.shape, generator=generator, device=tensor.device)
    is_zero = torch.rand(tensor.shape, generator=generator, device=tensor.device) < _ZERO_SHARE
    return torch.where(is_zero, 0.0, _small(tensor, drawn, least=least)).to(tensor.dtype)
