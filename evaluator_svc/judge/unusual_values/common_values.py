"""Elements that are equal to those of another tensor, an input or a parameter, or next to them.

Of tensors that are drawn one by one no two elements are equal, so that nobody sees on which side
of a comparison equal ones are, nor whether neighbours among the floats are taken for equal.
"""

from collections.abc import Sequence
from typing import Final

import torch

from evaluator_svc.judge.inputs.free_inputs import free_inputs
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload
from evaluator_svc.judge.reference.formats import FLOAT8
from evaluator_svc.judge.tensors.structure import keeps_structure
from evaluator_svc.judge.tensors.tensor_parts import generator_of, random_signs

_SHARE: Final = 0.125
"""Of the elements, for each other tensor that lends some."""
_MOST_LENDERS: Final = 3
_MOST_CHANNELS: Final = 8
"""Places of an axis along which elements may be equal, as the colours of a grey pixel are."""
_NEIGHBOURS: Final = 0.25
"""Of these elements: next to the other tensor's, above or below."""


def with_common_values(prepared: PreparedWorkload, input_set: InputSet) -> InputSet:
    """Return a set in which free inputs have some elements of other tensors of their type.

    Each from the place of the other tensor that lies along the same axes, or from any place.
    """
    inputs = list(input_set.inputs)
    for index in free_inputs(prepared, input_set):
        tensor = inputs[index]
        if not tensor.is_floating_point() or tensor.dtype in FLOAT8 or not tensor.numel():
            continue
        others = [
            other
            for other in (
                *inputs[:index],
                *input_set.inputs[index + 1 :],
                *input_set.state.values(),
            )
            if other.dtype == tensor.dtype and other.numel() > 1
        ]
        changed = _with_elements(_with_equal_channels(tensor), others[:_MOST_LENDERS])
        if keeps_structure(tensor, changed):
            inputs[index] = changed
    return input_set.with_inputs(inputs)


def _with_equal_channels(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor with elements equal along short axes: all in some places, two in others."""
    generator, device, result = generator_of(tensor), tensor.device, tensor
    for axis, size in enumerate(tensor.shape):
        if not 1 < size <= _MOST_CHANNELS:
            continue
        shape = [1 if a == axis else length for a, length in enumerate(tensor.shape)]
        drawn = torch.rand(shape, generator=generator, device=device)
        first = result.narrow(axis, 0, 1).expand(tensor.shape)
        result = torch.where(drawn < _SHARE, first, result)
        is_second = torch.arange(size, device=device).view(-1, *(1 for _ in shape[axis + 1 :])) == 1
        result = torch.where(is_second & (drawn > 1.0 - _SHARE), first, result)
    return result


def _with_elements(tensor: torch.Tensor, others: Sequence[torch.Tensor]) -> torch.Tensor:
    generator, device = generator_of(tensor), tensor.device
    result = tensor
    for other in others:
        shape = tensor.shape
        places = torch.randint(0, other.numel(), shape, generator=generator, device=device)
        lent = other.reshape(-1)[places]
        along = _along(other, shape)
        if along is not None:
            is_along = torch.rand(shape, generator=generator, device=device) < 0.5
            lent = torch.where(is_along, along, lent)
        is_next = torch.rand(shape, generator=generator, device=device) < _NEIGHBOURS
        unit = torch.finfo(other.dtype).eps * random_signs(lent, generator)
        lent = torch.where(is_next, lent * (1.0 + unit), lent)
        is_lent = torch.rand(shape, generator=generator, device=device) < _SHARE
        result = torch.where(is_lent & (result != 0), lent, result)
    return result


def _along(other: torch.Tensor, shape: torch.Size) -> torch.Tensor | None:
    """Return a tensor as it lies beside one of another shape; None where it does not."""
    try:
        return other.expand(shape)
    except RuntimeError:
        pass
    axes = [axis for axis, size in enumerate(shape) if size == other.numel()]
    if not axes:
        return None
    beside = [-1 if axis == axes[0] else 1 for axis in range(len(shape))]
    return other.reshape(beside).expand(shape)
