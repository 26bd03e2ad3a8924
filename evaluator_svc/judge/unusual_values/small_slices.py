"""Rows that are small as a whole, and small variances: beside them a small number added counts.

What a reference adds to a variance or has for the least length is nothing beside ordinary values,
so that a kernel may leave it out or add it elsewhere. Inputs become small only where the results
do not: a product of small values is small, and its rounding no matter.
"""

import math
import operator
from collections.abc import Mapping
from functools import partial
from typing import Final

import torch

from evaluator_svc.judge.inputs.defined_values import SmallSlices
from evaluator_svc.judge.inputs.free_inputs import free_inputs, with_free_inputs
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PREPARATION_SEED, PreparedWorkload
from evaluator_svc.judge.tensors.tensor_parts import (
    by_block,
    generator_of_stream,
    root_mean_square,
)
from evaluator_svc.judge.unusual_values.defined_results import is_defined
from evaluator_svc.judge.unusual_values.far_rows import defined_inputs
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
_LEAST_ALONE: Final = {
    torch.float16: -6.0,
    torch.bfloat16: -40.0,
    torch.float32: -40.0,
    torch.float64: -40.0,
}
"""Binary logarithm of the smallest factor where other inputs stay as they are: under a root, 1e-8
is to count beside what is small."""
_BEYOND: Final = 12.0
"""How far the smallest are below a number that the reference cuts off at, such as a least length of
1e-12: a length is that of many elements."""
_LEAST_CUT: Final = -56.0
"""Binary logarithm of the smallest factor there: squares are still no denormal numbers."""
_TRIED_FACTOR: Final = 2.0**-4
"""Factor of the small inputs on which the reference is tried."""
_KEPT_SHARE: Final = 0.5
"""Share of its size that a result must keep there at least."""
_ZERO_SHARE: Final = 0.125
"""Share of variances that are zero, as those of channels that never fire."""
_STREAM: Final = 0x2F0B_4472_51D6_8CA7
"""Tells these draws from those of the inputs."""


def with_small_slices(prepared: PreparedWorkload, input_set: InputSet) -> InputSet:
    """Return a set with small slices of inputs, or small variances; itself where none has any."""
    if not prepared.traits.divides:
        return input_set
    slices = prepared.once(_small_slices)
    is_across = prepared.traits.is_across(input_set.seed)
    cut = _cut_exponent(prepared)

    def small(index: int, tensor: torch.Tensor) -> torch.Tensor:
        if index not in slices.inputs:
            return tensor
        least = _LEAST_EXPONENT[tensor.dtype] if slices.has_all else _LEAST_ALONE[tensor.dtype]
        if tensor.dtype is not torch.float16:
            least = min(least, cut)
        return with_slices(tensor, partial(_small, least=least), is_across=is_across)

    changed = with_free_inputs(prepared, input_set, small)
    if not slices.of_variances:
        return changed
    generator = generator_of_stream(_STREAM, input_set.seed, prepared.module.device)
    state = dict(input_set.state)
    for rule in prepared.rules:
        least = _LEAST_EXPONENT.get(rule.base.dtype)
        if rule.is_free and rule.keeps_sign and least is not None:
            state[rule.path] = _small_variances(state[rule.path], least, generator)
    return changed.with_values(changed.inputs, state)


def _cut_exponent(prepared: PreparedWorkload) -> float:
    """Return the binary logarithm of what is below all numbers that the reference cuts off at."""
    uses = prepared.float_uses
    bounds = uses.least_bounds if uses is not None else frozenset()
    return max(math.log2(min(bounds)) - _BEYOND, _LEAST_CUT) if bounds else 0.0


def _small_slices(prepared: PreparedWorkload) -> SmallSlices:
    """Return what may be small: inputs whose results keep their size, variances if there are any.

    A set is tried in which all inputs are smaller as a whole, or one of them is.
    """
    ordinary = prepared.shared_set(PREPARATION_SEED)
    floats = frozenset(
        index
        for index in free_inputs(prepared, ordinary)
        if ordinary.inputs[index].dtype in _LEAST_EXPONENT
    )

    def is_taken(chosen: frozenset[int]) -> bool:
        smaller = _scaled(ordinary, dict.fromkeys(chosen, _TRIED_FACTOR))
        try:
            pairs = zip(_output_sizes(ordinary), _output_sizes(smaller), strict=True)
        except TaskInvalidError:
            return False
        return any(other >= _KEPT_SHARE * one > 0.0 for one, other in pairs)

    inputs = defined_inputs(floats, is_taken)
    if inputs != floats and not is_defined(_scaled_least(ordinary, inputs)):
        inputs = frozenset()
    return SmallSlices(
        inputs=inputs,
        has_all=inputs == floats,
        of_variances=any(rule.is_free and rule.keeps_sign for rule in prepared.rules),
    )


def _scaled(input_set: InputSet, factors: Mapping[int, float]) -> InputSet:
    return input_set.with_inputs(
        [
            by_block(tensor, partial(operator.mul, factors[index])) if index in factors else tensor
            for index, tensor in enumerate(input_set.inputs)
        ]
    )


def _scaled_least(input_set: InputSet, chosen: frozenset[int]) -> InputSet:
    least = {index: 2.0 ** _LEAST_ALONE[input_set.inputs[index].dtype] for index in chosen}
    return _scaled(input_set, least)


def _output_sizes(input_set: InputSet) -> list[float]:
    """Return the root mean square of each output; those of one set alone are held."""
    return [
        root_mean_square(output) if output.is_floating_point() and output.numel() else 0.0
        for output in input_set.run()
    ]


def _small(old: torch.Tensor, drawn: torch.Tensor, *, least: float) -> torch.Tensor:
    # A power of two: mantissas stay.
    return old * torch.exp2((least * drawn).round()).to(old.dtype)


def _small_variances(
    tensor: torch.Tensor, least: float, generator: torch.Generator
) -> torch.Tensor:
    drawn = torch.rand(tensor.shape, generator=generator, device=tensor.device)
    is_zero = torch.rand(tensor.shape, generator=generator, device=tensor.device) < _ZERO_SHARE
    return torch.where(is_zero, 0.0, _small(tensor, drawn, least=least)).to(tensor.dtype)
