"""Whole numbers of any size that a reference takes: integers, and floats that are whole.

What a kernel may take for a place, a length or a class stays: what the reference itself takes for
one (`reference/input_uses.py`), offsets in order, masks of two or three values.
"""

from bisect import bisect
from dataclasses import replace
from typing import Final

import torch

from evaluator_svc.judge.inputs.defined_values import WholeSizes
from evaluator_svc.judge.inputs.free_inputs import free_inputs, with_free_inputs
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PREPARATION_SEED, PreparedWorkload
from evaluator_svc.judge.reference.formats import computable
from evaluator_svc.judge.reference.integer_overflows import IntegerOverflows
from evaluator_svc.judge.tensors.structure import is_whole, structures
from evaluator_svc.judge.unusual_values.defined_results import is_defined
from evaluator_svc.judge.unusual_values.other_steps import LEAST_STEPS, with_other_steps
from evaluator_svc.judge.unusual_values.whole_numbers import large_integers, with_fractions

_SPARE_BITS: Final = (0, 1)
"""Spare bits of integers that fill their type, and of those whose difference fits into it."""
_MOST_BITS: Final = 40
"""Bits of the largest numbers that are asked for where larger ones overflow."""
_SPARE: Final = 2
"""Bits fewer than those of numbers that overflow: a few numbers of another draw may be larger."""
_CODES: Final = 256
"""Most different values of a tensor of classes; with more they are numbers, whatever they look
up."""
_MASKS: Final = 3
"""Most different values of a mask or of signs."""


def with_unusual_integers(prepared: PreparedWorkload, input_set: InputSet) -> InputSet:
    """Return a set with larger numbers, other powers and other shifts that the reference takes."""
    sizes, spare_bits = prepared.once(_sizes), prepared.once(_spare_bits)
    larger = _with_large(prepared, input_set, sizes, spare_bits=spare_bits)
    return with_other_steps(prepared, larger, prepared.once(_least_step))


def _sizes(prepared: PreparedWorkload) -> WholeSizes:
    """Return the sizes that are tried: the largest, or what the reference gives numbers on."""
    ordinary = prepared.shared_set(PREPARATION_SEED)

    def is_taken(sizes: WholeSizes) -> bool:
        changed = _with_large(prepared, ordinary, sizes)
        return changed is ordinary or is_defined(changed)

    for any_sign in (True, False):
        if is_taken(WholeSizes(any_sign=any_sign)):
            return WholeSizes(any_sign=any_sign)
    too_large = 1 + bisect(
        range(1, _MOST_BITS), 0, key=lambda bits: not is_taken(WholeSizes(bits=bits))
    )
    found = WholeSizes(bits=max(too_large - _SPARE, 0))
    signed = replace(found, any_sign=True)
    return signed if is_taken(signed) else found


def _spare_bits(prepared: PreparedWorkload) -> int | None:
    ordinary, sizes = prepared.shared_set(PREPARATION_SEED), prepared.once(_sizes)
    for spare_bits in _SPARE_BITS if prepared.traits.is_whole else ():
        large = _with_large(prepared, ordinary, sizes, spare_bits=spare_bits)
        with IntegerOverflows() as overflows:
            is_taken = large is not ordinary and is_defined(large)
        if is_taken and not overflows.found:
            return spare_bits
    return None


def _least_step(prepared: PreparedWorkload) -> int | None:
    ordinary = prepared.shared_set(PREPARATION_SEED)
    for least in LEAST_STEPS if prepared.input_uses.steps else ():
        other = with_other_steps(prepared, ordinary, least)
        if other is not ordinary and is_defined(other):
            return least
    return None


def _with_large(
    prepared: PreparedWorkload,
    input_set: InputSet,
    sizes: WholeSizes,
    *,
    spare_bits: int | None = None,
) -> InputSet:
    """Return a set with larger numbers; itself where there are none, or the reference takes none.

    A GPU's reference is asked for every draw, on the host: an index beyond its table would end the
    judge. One that takes numbers of a tensor for sizes is not asked at all.

    Args:
        prepared: The workload.
        input_set: Ordinary inputs of it.
        sizes: What they may be.
        spare_bits: How many bits of their type integers leave; None: as many as usual.
    """
    if prepared.traits.sizes_by_values:
        return input_set

    def larger(index: int, tensor: torch.Tensor) -> torch.Tensor:
        if not _is_number(prepared, index, tensor):
            return tensor
        return _larger(tensor, sizes, spare_bits=spare_bits)

    changed = with_free_inputs(prepared, input_set, larger)
    is_accepted = changed is input_set or changed.is_taken()
    return changed if is_accepted else input_set


def unvaried_numbers(prepared: PreparedWorkload, *, is_tried: bool) -> tuple[str, ...]:
    """Return the names of inputs whose whole numbers have no other sizes than `get_inputs` gives.

    Not those that the reference takes for places or classes, nor masks and signs.

    Args:
        prepared: The workload.
        is_tried: Whether candidates are tried on larger numbers of others.
    """
    sample = prepared.shared_set(PREPARATION_SEED)
    return tuple(
        sample.arguments.names[index]
        for index in free_inputs(prepared, sample)
        if _has_whole_sizes(tensor := sample.inputs[index])
        and _is_free(prepared, index)
        and not (is_tried and _is_number(prepared, index, tensor))
        and _larger(tensor, WholeSizes()) is not tensor
    )


def _has_whole_sizes(tensor: torch.Tensor) -> bool:
    if tensor.dtype is torch.bool or not tensor.numel():
        return False
    return (not tensor.is_floating_point() or is_whole(computable(tensor))) and _has_sizes(tensor)


def _larger(
    tensor: torch.Tensor, sizes: WholeSizes, *, spare_bits: int | None = None
) -> torch.Tensor:
    any_sign, bits = sizes.any_sign, sizes.bits
    if tensor.is_floating_point():
        return with_fractions(tensor, any_sign=any_sign, bits=bits)
    return large_integers(tensor, any_sign=any_sign, bits=bits, spare_bits=spare_bits)


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
