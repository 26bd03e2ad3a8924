"""Elements up to the ends of what a reference takes, where ordinary ones stay in the middle.

Most kinds of unusual values leave a bounded domain, such as that of `asin`, and are left out then.
Its ends are found by halving: between what `get_inputs` draws and 64 times as much, a reference
that works element by element begins to give NaN. An end by an overflow is none.
"""

from collections.abc import Mapping
from typing import Final

import torch

from evaluator_svc.judge.inputs.few_rows import few_rows
from evaluator_svc.judge.inputs.free_inputs import free_inputs, with_free_inputs
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload
from evaluator_svc.judge.reference.formats import FLOAT8
from evaluator_svc.judge.tensors.structure import keeps_structure
from evaluator_svc.judge.tensors.tensor_parts import by_block, generator_of
from evaluator_svc.judge.unusual_values.defined_results import has_no_nan, is_defined
from evaluator_svc.judge.unusual_values.far_rows import defined_inputs
from kernel_foundry.errors import TaskInvalidError

_FARTHEST: Final = 64.0
"""How far from ordinary values an end is looked for, in units of the largest."""
_REACHED: Final = 1 / 16
"""Ordinary values that are as close to an end, in these units, try it themselves."""
_EXACT: Final = 2.0**-20
"""How exactly an end is found, in these units."""
_LEAST_EXPONENT: Final = -12.0
"""Binary logarithm of the least such share that is drawn: nearer to it usual formulas cancel."""
_MOST_GROWTH: Final = 2.0**10
"""Most that results grow up to there: beyond that something overflows."""
_SHARE: Final = 0.25
"""Of the elements."""

Ends = Mapping[int, tuple[tuple[float, float], ...]]
"""By the index of an input, the ends of its domain, each after the middle of what is drawn."""


def with_domain_ends(prepared: PreparedWorkload, input_set: InputSet, ends: Ends) -> InputSet:
    """Return a set with a quarter of the elements on the way to the ends, most of them near."""

    def placed(index: int, tensor: torch.Tensor) -> torch.Tensor:
        return _with_ends(tensor, ends[index]) if index in ends else tensor

    return with_free_inputs(prepared, input_set, placed) if ends else input_set


def domain_ends(prepared: PreparedWorkload) -> Ends:
    """Return the ends that ordinary values do not reach, of inputs that may be near together."""
    if not prepared.traits.is_pointwise:
        return {}
    few = prepared.once(few_rows)
    found = {index: _ends_of(few, index) for index in free_inputs(prepared, few)}
    found = {index: ends for index, ends in found.items() if ends}
    if not found:
        return {}

    def is_taken(chosen: frozenset[int]) -> bool:
        return is_defined(with_domain_ends(prepared, few, {i: found[i] for i in chosen}))

    return {index: found[index] for index in defined_inputs(found, is_taken)}


def _ends_of(few: InputSet, index: int) -> tuple[tuple[float, float], ...]:
    tensor = few.inputs[index]
    if not tensor.is_floating_point() or tensor.dtype in FLOAT8 or not tensor.numel():
        return ()
    low, high = (float(end) for end in torch.aminmax(tensor))
    middle, size = (low + high) / 2, max(abs(low), abs(high))
    ends = []
    for reached, way in ((high, size), (low, -size)):
        end = _end(few, index, reached, way)
        if end is not None and not _overflows(
            few, index, end + (middle - end) * 2.0**_LEAST_EXPONENT
        ):
            ends.append((middle, end))
    return tuple(ends)


def _end(few: InputSet, index: int, reached: float, way: float) -> float | None:
    """Return about the last number before those that give NaN; None: there is none to look for.

    Args:
        few: A few rows.
        index: Of the input.
        reached: The ordinary value that is the farthest.
        way: From there, as long as the largest one.
    """

    def gives_numbers(value: float) -> bool:
        return has_no_nan(_filled(few, index, value))

    inside, outside = reached + _REACHED * way, reached + _FARTHEST * way
    if gives_numbers(outside) or not gives_numbers(inside):
        return None
    while abs(outside - inside) > _EXACT * abs(way):
        between = (inside + outside) / 2
        if gives_numbers(between):
            inside = between
        else:
            outside = between
    return inside


def _overflows(few: InputSet, index: int, near: float) -> bool:
    try:
        pairs = list(zip(few.expected(), _filled(few, index, near).expected(), strict=True))
    except TaskInvalidError:
        return True
    floats = [(one, two) for one, two in pairs if one.is_floating_point() and one.numel()]
    return not all(
        float(two.abs().max()) <= _MOST_GROWTH * float(one.abs().max()) for one, two in floats
    )


def _filled(few: InputSet, index: int, value: float) -> InputSet:
    inputs = list(few.inputs)
    inputs[index] = torch.full_like(inputs[index], value)
    return few.with_inputs(inputs)


def _with_ends(tensor: torch.Tensor, ends: tuple[tuple[float, float], ...]) -> torch.Tensor:
    generator, device = generator_of(tensor), tensor.device
    middle, end = torch.tensor(ends, dtype=torch.float64, device=device).T

    def placed(old: torch.Tensor) -> torch.Tensor:
        shape = old.shape
        drawn = torch.rand(shape, generator=generator, dtype=torch.float64, device=device)
        chosen = torch.randint(0, len(ends), shape, generator=generator, device=device)
        is_placed = torch.rand(shape, generator=generator, device=device) < _SHARE
        share = torch.exp2(_LEAST_EXPONENT * drawn)
        near = end[chosen] + (middle - end)[chosen] * share
        return torch.where(is_placed & (old != 0), near.to(old.dtype), old)

    result = by_block(tensor, placed)
    return result if keeps_structure(tensor, result) else tensor
