"""Whole numbers of any size that a reference takes: integers, and floats that are whole.

What a kernel may take for a place, a length or a class stays: what the reference itself takes for
one (`reference/input_uses.py`), offsets in order, masks of two or three values.
"""

from typing import Final

import torch

from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PREPARATION_SEED, PreparedWorkload
from evaluator_svc.judge.reference.formats import computable
from evaluator_svc.judge.tensors.structure import is_whole, structures
from evaluator_svc.judge.unusual_values.whole_numbers import large_integers, with_fractions

_CODES: Final = 256
"""So many values or fewer may be classes; more are numbers, whatever they look up in the end…"""
_MASKS: Final = 3
"""…and so many are the values of masks and signs."""


def with_large_integers(
    prepared: PreparedWorkload,
    input_set: InputSet,
    *,
    any_sign: bool,
    is_whole_type: bool = False,
) -> InputSet:
    """Return a set with larger numbers; itself where there are none, or the reference takes none.

    A GPU's reference is asked for every draw, on the host: an index beyond its table would end the
    judge. One that takes numbers of a tensor for sizes is not asked at all.

    Args:
        prepared: The workload.
        input_set: Ordinary inputs of it.
        any_sign: Whether signs are drawn; else each number keeps its own.
        is_whole_type: Whether integers may be as large as their type holds.
    """
    if prepared.sizes_by_values:
        return input_set
    constants = prepared.task.constants
    names, fixed = input_set.arguments.names, prepared.fixed_inputs
    inputs = [
        tensor
        if name in constants or is_fixed or not _is_number(prepared, index, tensor)
        else _larger(tensor, any_sign=any_sign, is_whole_type=is_whole_type)
        for index, (name, tensor, is_fixed) in enumerate(
            zip(names, input_set.inputs, fixed, strict=True)
        )
    ]
    larger = input_set.with_inputs(inputs)
    is_accepted = larger is input_set or prepared.takes(inputs, input_set.state)
    return larger if is_accepted else input_set


def unvaried_numbers(prepared: PreparedWorkload, *, is_tried: bool) -> tuple[str, ...]:
    """Return the names of inputs whose whole numbers have no other sizes than `get_inputs` gives.

    Not those that the reference takes for places or classes, nor masks and signs.

    Args:
        prepared: The workload.
        is_tried: Whether candidates are tried on larger numbers of others.
    """
    sample, constants = prepared.shared_set(PREPARATION_SEED), prepared.task.constants
    named = zip(sample.arguments.names, sample.inputs, prepared.fixed_inputs, strict=True)
    return tuple(
        name
        for index, (name, tensor, is_fixed) in enumerate(named)
        if name not in constants
        and not is_fixed
        and _has_whole_sizes(tensor)
        and _is_free(prepared, index)
        and not (is_tried and _is_number(prepared, index, tensor))
        and _larger(tensor, any_sign=False) is not tensor
    )


def _has_whole_sizes(tensor: torch.Tensor) -> bool:
    if tensor.dtype is torch.bool or not tensor.numel():
        return False
    return (not tensor.is_floating_point() or is_whole(computable(tensor))) and _has_sizes(tensor)


def _larger(tensor: torch.Tensor, *, any_sign: bool, is_whole_type: bool = False) -> torch.Tensor:
    if tensor.is_floating_point():
        return with_fractions(tensor, any_sign=any_sign)
    return large_integers(tensor, any_sign=any_sign, is_whole_type=is_whole_type)


def _is_number(prepared: PreparedWorkload, index: int, tensor: torch.Tensor) -> bool:
    if tensor.dtype is torch.bool or not tensor.numel():
        return False
    if tensor.is_floating_point():
        is_number = is_whole(computable(tensor)) and _has_sizes(tensor)
        return is_number and structures(tensor) == {"labels"} and _is_free(prepared, index)
    bound = structures(tensor)
    low, high = int(tensor.min()), int(tensor.max())
    longest = max(size for other in prepared.tensors for size in (*other.shape, 1))
    if max(high, -low) > longest and high - low >= _CODES:
        # Large numbers of which a row has none twice look like a permutation, and are none of
        # places.
        return bound <= {"permutation"}
    return not bound and high - low >= _MASKS and _is_free(prepared, index)


def _has_sizes(tensor: torch.Tensor) -> bool:
    low, high = (float(end) for end in torch.aminmax(computable(tensor)))
    return -float("inf") < low <= high - _MASKS < float("inf")


def _is_free(prepared: PreparedWorkload, index: int) -> bool:
    return index not in prepared.input_uses.places
