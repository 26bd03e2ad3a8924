"""Integer inputs of any size that a reference takes.

What a kernel may take for a place, a length or a class stays: numbers no larger than the longest
axis, few of them, offsets in order.
"""

from typing import Final

import torch

from evaluator_svc.judge.draws.changed_values import large_integers
from evaluator_svc.judge.draws.input_set import InputSet
from evaluator_svc.judge.draws.prepared import PreparedWorkload
from evaluator_svc.judge.draws.structure import structures

_CODES: Final = 256
"""So many values, or fewer, are classes or codes of 8 bits."""


def with_large_integers(
    prepared: PreparedWorkload, input_set: InputSet, *, any_sign: bool
) -> InputSet:
    """Return a set with larger integers; itself where there are none, or the reference takes none.

    A GPU's reference is asked for every draw, on the host: an index beyond its table would end the
    judge. One that takes numbers of a tensor for sizes is not asked at all.

    Args:
        prepared: The workload.
        input_set: Ordinary inputs of it.
        any_sign: Whether signs are drawn; else each number keeps its own.
    """
    if prepared.sizes_by_values:
        return input_set
    longest = max(size for tensor in prepared.tensors for size in (*tensor.shape, 1))
    constants = prepared.task.constants
    names, fixed = input_set.arguments.names, prepared.fixed_inputs
    inputs = [
        tensor
        if name in constants or is_fixed or not _is_number(tensor, longest)
        else large_integers(tensor, any_sign=any_sign)
        for name, tensor, is_fixed in zip(names, input_set.inputs, fixed, strict=True)
    ]
    if all(new is old for new, old in zip(inputs, input_set.inputs, strict=True)):
        return input_set
    is_accepted = prepared.takes(inputs, input_set.state)
    return input_set.with_values(inputs, input_set.state) if is_accepted else input_set


def _is_number(tensor: torch.Tensor, longest: int) -> bool:
    if tensor.is_floating_point() or tensor.dtype is torch.bool or not tensor.numel():
        return False
    low, high = int(tensor.min()), int(tensor.max())
    if max(high, -low) <= longest or high - low < _CODES:
        return False
    # Large numbers of which a row has none twice look like a permutation, and are none of places.
    return structures(tensor) <= {"permutation"}
