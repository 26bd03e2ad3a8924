"""Whole numbers of any size that a reference takes: integers, and floats that are whole.

What a kernel may take for a place, a length or a class stays: what the reference itself takes for
one (`reference/input_uses.py`), offsets in order, masks of two or three values.
"""

from collections.abc import Callable
from typing import Final

import torch

from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PREPARATION_SEED, PreparedWorkload
from evaluator_svc.judge.reference.formats import computable
from evaluator_svc.judge.reference.integer_overflows import IntegerOverflows
from evaluator_svc.judge.tensors.structure import is_whole, structures
from evaluator_svc.judge.unusual_values.other_steps import LEAST_STEPS, with_other_steps
from evaluator_svc.judge.unusual_values.whole_numbers import large_integers, with_fractions

_SPARE_BITS: Final = (0, 1)
"""Of integers as large as their type holds, and of those whose difference it holds."""
_CODES: Final = 256
"""So many values or fewer may be classes; more are numbers, whatever they look up in the end…"""
_MASKS: Final = 3
"""…and so many are the values of masks and signs."""


def find_integers(prepared: PreparedWorkload, is_defined: Callable[[InputSet], bool]) -> None:
    """Find out which integers the reference gives numbers on, and note it in `prepared`.

    Args:
        prepared: The workload.
        is_defined: Says whether the reference gives numbers on a set.
    """
    ordinary, defined = prepared.shared_set(PREPARATION_SEED), prepared.defined
    signed = with_large_integers(prepared, ordinary, any_sign=True)
    any_sign = prepared.any_integer_sign = signed is not ordinary and is_defined(signed)
    for spare_bits in _SPARE_BITS if prepared.traits.is_whole else ():
        large = with_large_integers(prepared, ordinary, any_sign=any_sign, spare_bits=spare_bits)
        with IntegerOverflows() as overflows:
            is_taken = large is not ordinary and is_defined(large)
        if is_taken and not overflows.found:
            defined.spare_bits = spare_bits
            break
    for least in LEAST_STEPS if prepared.input_uses.steps else ():
        other = with_other_steps(prepared, ordinary, least)
        if other is not ordinary and is_defined(other):
            defined.least_step = least
            break


def with_unusual_integers(prepared: PreparedWorkload, input_set: InputSet) -> InputSet:
    """Return a set with larger numbers, other powers and other shifts, as was found out."""
    larger = with_large_integers(
        prepared,
        input_set,
        any_sign=bool(prepared.any_integer_sign),
        spare_bits=prepared.defined.spare_bits,
    )
    return with_other_steps(prepared, larger, prepared.defined.least_step)


def with_large_integers(
    prepared: PreparedWorkload,
    input_set: InputSet,
    *,
    any_sign: bool,
    spare_bits: int | None = None,
) -> InputSet:
    """Return a set with larger numbers; itself where there are none, or the reference takes none.

    A GPU's reference is asked for every draw, on the host: an index beyond its table would end the
    judge. One that takes numbers of a tensor for sizes is not asked at all.

    Args:
        prepared: The workload.
        input_set: Ordinary inputs of it.
        any_sign: Whether signs are drawn; else each number keeps its own.
        spare_bits: How many bits of their type integers leave; None: as many as usual.
    """
    if prepared.traits.sizes_by_values:
        return input_set
    constants = prepared.task.constants
    names, fixed = input_set.arguments.names, prepared.fixed_inputs
    inputs = [
        tensor
        if name in constants or is_fixed or not _is_number(prepared, index, tensor)
        else _larger(tensor, any_sign=any_sign, spare_bits=spare_bits)
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


def _larger(tensor: torch.Tensor, *, any_sign: bool, spare_bits: int | None = None) -> torch.Tensor:
    if tensor.is_floating_point():
        return with_fractions(tensor, any_sign=any_sign)
    return large_integers(tensor, any_sign=any_sign, spare_bits=spare_bits)


def _is_number(prepared: PreparedWorkload, index: int, tensor: torch.Tensor) -> bool:
    if tensor.dtype is torch.bool or not tensor.numel():
        return False
    if tensor.is_floating_point():
        is_number = is_whole(computable(tensor)) and _has_sizes(tensor)
        return is_number and structures(tensor) == {"labels"} and _is_free(prepared, index)
    bound = structures(tensor)
    low, high = int(tensor.min()), int(tensor.max())
    longest = max(size for other in prepared.tensors for size in (*other.shape, 1))
    if index in prepared.input_uses.steps:
        return False
    if max(high, -low) > longest and high - low >= _CODES:
        # Large numbers of which a row has none twice look like a permutation, and are none of
        # places.
        return bound <= {"permutation"}
    return not bound and high - low >= _MASKS and _is_free(prepared, index)


def _has_sizes(tensor: torch.Tensor) -> bool:
    low, high = (float(end) for end in torch.aminmax(computable(tensor)))
    return -float("inf") < low <= high - _MASKS < float("inf")


def _is_free(prepared: PreparedWorkload, index: int) -> bool:
    uses = prepared.input_uses
    return index not in uses.places and index not in uses.steps
