"""Compares a candidate's indices with the reference's by the values that they look up.

Indices of equal values may come in any order. If the reference computes the values, those within
its rounding errors count as equal; if it only moves them, as from an input, they have to be equal
exactly. If the reference names no value twice, as in a sort or the largest few, duplicates are
errors, so a sort's output stays a permutation.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import torch

from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.reference.indexed_values import IndexedValues, IndexLog
from evaluator_svc.judge.tensors.rounding_noise import SAFETY, RoundingNoise
from kernel_foundry.errors import TaskInvalidError

_NOISE_SEEDS: Final = (1, 2, 3, 4)
"""Seeds of the rounding noise, so many that it moves every element at least once."""
_SELECTIONS: Final = frozenset({
    "abs", "amax", "amin", "clamp", "clamp_max", "clamp_min", "masked_fill", "max", "maximum",
    "min", "minimum", "neg", "relu", "sort", "topk", "where",
})  # fmt: skip
"""Operators that only move and select values, so their results have no rounding errors."""
_BLOCK_ELEMENTS: Final = 1 << 22
"""Indices looked at in a block."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Reference:
    """The values that an output of the reference looks up."""

    looked_up: IndexedValues
    slack: torch.Tensor
    """For each value, the largest distance of another value that may take its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedOutputs:
    """The outputs of a reference that are indices, by their index."""

    exact: frozenset[int]
    """Outputs that are indices of values without rounding errors."""
    following: frozenset[int]
    """Outputs that are indices, or are computed from some."""


def placed_outputs(input_set: InputSet) -> PlacedOutputs:
    """Return which outputs indices have a part in."""
    with IndexLog() as log:
        outputs = input_set.run(dtype=torch.float32)
    known = [log.of(output) for output in outputs]
    exact = frozenset(
        index
        for index in range(len(known))
        if (reference := _reference(input_set, known, index)) is not None
        and reference.looked_up.is_first
        and not bool(reference.slack.any())
    )
    following = frozenset(i for i, output in enumerate(outputs) if log.follows_indices(output))
    return PlacedOutputs(exact=exact, following=following)


def count_misplaced(
    input_set: InputSet, output: int, expected: torch.Tensor, written: Sequence[torch.Tensor]
) -> tuple[int, ...] | None:
    """Return how many indices of each version look up another value than those of the reference.

    None: the output holds no indices, or the first of equal values is asked for. Where a version
    names a value twice, and the reference none, all that differ count.

    Args:
        input_set: What the reference ran on.
        output: Index of the output.
        expected: What the reference gave.
        written: What candidates wrote in its place.

    Raises:
        TaskInvalidError: the reference raises.
    """
    reference = _reference(input_set, _looked_up(input_set), output)
    if reference is None or reference.looked_up.names_first:
        return None
    is_distinct = _names_none_twice(expected, reference.looked_up)
    return tuple(_misplaced(actual, expected, reference, is_distinct) for actual in written)


def _looked_up(input_set: InputSet) -> list[IndexedValues | None]:
    """Return the values that each output looks up when the reference runs in its own formats."""
    with IndexLog() as log:
        outputs = input_set.run(dtype=torch.float32)
    return [log.of(output) for output in outputs]


def _reference(
    input_set: InputSet, known: Sequence[IndexedValues | None], output: int
) -> _Reference | None:
    looked_up = known[output]
    if looked_up is None:
        return None
    values = looked_up.values
    slack = torch.zeros_like(values)
    if not values.is_floating_point():
        return _Reference(looked_up=looked_up, slack=slack)
    for moved in _other_values(input_set, output):
        if moved is None or moved.shape != values.shape:
            return None
        error = (moved.to(values.dtype) - values).abs_().nan_to_num_(0.0, 0.0, 0.0)
        slack = torch.maximum(slack, error)
    if bool(slack.any()):
        # By chance some are where they were.
        slack = torch.maximum(slack, values.abs().mul_(torch.finfo(values.dtype).eps / 2))
    return _Reference(looked_up=looked_up, slack=slack.mul_(SAFETY[input_set.module.rounding]))


def _other_values(input_set: InputSet, output: int) -> Iterator[torch.Tensor | None]:
    """Yield what an output looks up where the reference rounds otherwise, or not at all."""
    for seed in _NOISE_SEEDS:
        noise = RoundingNoise(seed=seed, device=input_set.module.device, kept=_SELECTIONS)
        with noise, IndexLog() as log:
            yield _values(log.of(input_set.run()[output]))
    try:
        with IndexLog() as log:
            exact = _values(log.of(input_set.run(dtype=torch.float64)[output]))
    except (TaskInvalidError, torch.OutOfMemoryError):
        return  # it does not run in float64
    yield exact


def _values(looked_up: IndexedValues | None) -> torch.Tensor | None:
    return None if looked_up is None else looked_up.values


def _misplaced(
    actual: torch.Tensor, expected: torch.Tensor, reference: _Reference, is_distinct: bool
) -> int:
    differing = wrong = 0
    starts, looked_up = reference.looked_up.starts.reshape(-1), reference.looked_up
    written, right = actual.reshape(-1), expected.reshape(-1)
    for first in range(0, right.numel(), _BLOCK_ELEMENTS):
        part = slice(first, first + _BLOCK_ELEMENTS)
        places = torch.ne(written[part], right[part]).nonzero().flatten() + first
        index = written[places].long()
        is_one = index.ge(0).logical_and_(index < looked_up.count)
        begin = starts[places]
        named = begin + index.clamp_(0, looked_up.count - 1) * looked_up.stride
        meant = begin + right[places].long() * looked_up.stride
        one, two = looked_up.values[named], looked_up.values[meant]
        is_same = torch.eq(one, two)
        if one.is_floating_point():
            slack = torch.maximum(reference.slack[named], reference.slack[meant])
            is_same |= torch.le((one - two).abs_(), slack)
            is_same |= one.isnan() & two.isnan()
        differing += len(places)
        wrong += len(places) - int((is_same & is_one).sum())
    if differing and not wrong and is_distinct and not _names_none_twice(actual, looked_up):
        return differing
    return wrong


def _names_none_twice(indices: torch.Tensor, looked_up: IndexedValues) -> bool:
    """Return whether indices, which are in range, mean a different value each."""
    is_named = torch.zeros(looked_up.values.numel(), dtype=torch.bool, device=indices.device)
    flat, starts = indices.reshape(-1), looked_up.starts.reshape(-1)
    for first in range(0, flat.numel(), _BLOCK_ELEMENTS):
        part = slice(first, first + _BLOCK_ELEMENTS)
        is_named[starts[part] + flat[part].long() * looked_up.stride] = True
    return int(is_named.sum()) == flat.numel()
