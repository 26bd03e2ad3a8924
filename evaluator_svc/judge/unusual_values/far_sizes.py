"""Inputs multiplied by a power of two so far up or down that their squares are no numbers any more.

Only of a reference that does not care: element by element, with the same multiple of every output,
or the same output. There no kernel has a reason to square what it is given (`hypot`). What sums
rows up, and what has a size of its own, a sum that begins at one for example, is left alone.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final

import torch

from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PREPARATION_SEED, PreparedWorkload
from evaluator_svc.judge.tensors.structure import keeps_structure
from evaluator_svc.judge.tensors.tensor_parts import by_block
from kernel_foundry.domain.admission import Distribution
from kernel_foundry.errors import TaskInvalidError

_EXPONENTS: Final[Mapping[Distribution, Mapping[torch.dtype, int]]] = {
    Distribution.HUGE: {torch.float32: 64, torch.bfloat16: 64, torch.float64: 512},
    Distribution.TINY: {torch.float32: -76, torch.bfloat16: -76, torch.float64: -540},
}
"""Binary logarithm of the factor: half the way to the ends of a format, and a little more. A
stand-in for infinity, 1e30 and larger, is still larger."""
_MOST_ERROR: Final = 1e-6
"""Of an output that is the same multiple, beside itself: other operators may round otherwise."""


def with_far_sizes(
    prepared: PreparedWorkload, input_set: InputSet, distribution: Distribution
) -> InputSet:
    """Return a set of huge or tiny inputs; itself where the reference has a size of its own."""
    if prepared.traits.combines or not input_set.inputs:
        return input_set
    exponents = _EXPONENTS[distribution]
    is_taken = prepared.once(_may_be_of, distribution)
    return _scaled(prepared, input_set, exponents) if is_taken else input_set


def _may_be_of(prepared: PreparedWorkload, distribution: Distribution) -> bool:
    return has_no_size(prepared, _EXPONENTS[distribution])


def has_no_size(prepared: PreparedWorkload, exponents: Mapping[torch.dtype, int]) -> bool:
    """Return whether each output is multiplied as the inputs are, or stays, to within rounding.

    Args:
        prepared: The workload.
        exponents: Binary logarithms of what inputs are multiplied by, by their type.
    """
    ordinary = prepared.shared_set(PREPARATION_SEED)
    scaled = _scaled(prepared, ordinary, exponents)
    try:
        pairs = list(zip(ordinary.own(), scaled.own(), strict=True))
    except TaskInvalidError:
        return False
    return any(one.is_floating_point() for one, _ in pairs) and all(
        _is_multiple(one, two, exponents) for one, two in pairs
    )


def _scaled(
    prepared: PreparedWorkload, input_set: InputSet, exponents: Mapping[torch.dtype, int]
) -> InputSet:
    inputs = list(input_set.inputs)
    for index, tensor in enumerate(inputs):
        exponent = exponents.get(tensor.dtype)
        if exponent is None or prepared.fixed_inputs[index]:
            continue
        scaled = by_block(tensor, partial(torch.mul, other=2.0**exponent))
        if keeps_structure(tensor, scaled):
            inputs[index] = scaled
    return input_set.with_inputs(inputs)


def _is_multiple(
    one: torch.Tensor, two: torch.Tensor, exponents: Mapping[torch.dtype, int]
) -> bool:
    if not one.is_floating_point():
        return torch.equal(one, two)
    expected = (one.double() * 2.0**exponent for exponent in (0, exponents.get(one.dtype, 0)))
    found = two.double()
    return any(bool(((found - e).abs() <= _MOST_ERROR * e.abs()).all()) for e in expected)
