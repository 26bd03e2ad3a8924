"""Rows of one value each, as padding and plain pictures are, whose variance is rounding alone.

A kernel that takes it for mean of squares less square of mean gets less than zero there, and NaN
from its root. How near such a kernel comes elsewhere is for other draws to tell: here the order of
a sum decides over the digits, so candidates are held to numbers alone.
"""

from functools import partial

import torch

from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload
from evaluator_svc.judge.reference.formats import FLOAT8
from evaluator_svc.judge.tensors.tensor_parts import LARGE_FACTOR, root_mean_square
from evaluator_svc.judge.unusual_values.slices import with_slices


def with_level_slices(
    prepared: PreparedWorkload,
    input_set: InputSet,
    chosen: frozenset[int],
    *,
    has_powers: bool = False,
) -> InputSet:
    """Return a set with slices of one value in some inputs; itself where none has any.

    Args:
        prepared: The workload.
        input_set: Ordinary inputs of it.
        chosen: Inputs, by index.
        has_powers: Whether these values are powers of two, whose sums and squares round nothing.
    """
    constants, fixed = prepared.task.constants, prepared.fixed_inputs
    named = zip(input_set.arguments.names, input_set.inputs, fixed, strict=True)
    inputs = [
        tensor
        if index not in chosen or name in constants or is_fixed
        else _level(
            tensor, has_powers=has_powers, is_across=prepared.traits.is_across(input_set.seed)
        )
        for index, (name, tensor, is_fixed) in enumerate(named)
    ]
    return input_set.with_inputs(inputs)


def has_levels(tensor: torch.Tensor) -> bool:
    """Return whether a tensor may have such slices: of floats of 16 bits and more."""
    return tensor.is_floating_point() and tensor.dtype not in FLOAT8 and tensor.ndim > 1


def _level(tensor: torch.Tensor, *, has_powers: bool, is_across: bool) -> torch.Tensor:
    usual = root_mean_square(tensor)
    if usual == 0.0:
        return tensor
    change = partial(
        _level_values,
        usual=usual,
        most=LARGE_FACTOR.get(tensor.dtype, 64.0),
        has_signs=bool((tensor < 0).any()),
        has_powers=has_powers,
    )
    return with_slices(tensor, change, is_across=is_across)


def _level_values(
    old: torch.Tensor,
    drawn: torch.Tensor,
    *,
    usual: float,
    most: float,
    has_signs: bool,
    has_powers: bool,
) -> torch.Tensor:
    """Return slices of one value each, from what is usual up to `most` times that."""
    # Half of the numbers between 0 and 1 stand for negative values.
    place = (2.0 * drawn) % 1.0 if has_signs else drawn
    values = usual * torch.pow(most, place.double())
    if has_powers:
        values = torch.exp2(values.log2().round())
    if has_signs:
        values = torch.where(drawn < 0.5, -values, values)
    return values.to(old.dtype).expand(old.shape)
