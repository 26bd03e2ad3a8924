"""Rows far beyond what is usual: of thousands with one sign, and with minus infinity in runs.

Minus infinity is what masked logits are, whose softmax is a number; a maximum of large negative
values is one of them, whatever it began at. Which rows there are follows from what the reference
gives numbers on. Where it works element by element or looks for the largest, rows are infinite
throughout, too, and so may its results be: of these it has to give no NaN. Infinity is above zero
where it looks for the least.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Final

import torch

from evaluator_svc.judge.inputs.defined_values import FarRows
from evaluator_svc.judge.inputs.free_inputs import with_free_inputs
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PREPARATION_SEED, PreparedWorkload
from evaluator_svc.judge.tensors.structure import keeps_structure
from evaluator_svc.judge.tensors.tensor_parts import by_lines, by_row, generator_of
from evaluator_svc.judge.unusual_values.defined_results import (
    defined_outputs,
    has_no_nan,
    is_defined,
    is_well_defined,
    is_well_defined_in_part,
    well_defined_outputs,
)
from evaluator_svc.judge.unusual_values.far_sizes import has_no_size

_BANDS: Final = {
    torch.float16: (300.0, 2000.0),
    torch.bfloat16: (12000.0, 65000.0),
    torch.float32: (12000.0, 65000.0),
    torch.float64: (12000.0, 65000.0),
}
"""Least and most magnitude of large rows: of float16 the squares overflow, not the values; of wider
formats a maximum is far beyond what a kernel may begin at, and all are values of float16."""
_STEP: Final = 128.0
"""Distance of large values beyond which an exponential makes nothing of a difference; all formats
hold multiples of it."""
_FARTHER: Final = {100: 116, 24: 40}
"""Binary logarithms of extra factors for references without a size of their own, the largest first,
and of the farthest values, of which the reference is asked: beyond what a kernel may have for
infinity, such as -1e30, where values are only put in order; else squares are still numbers."""
_KINDS: Final = 8
"""Kinds of rows. The first three have infinity, the next three are large, the others unchanged."""
_INFINITE: Final = 3
"""Number of kinds with infinity."""
_LARGE: Final = 6
"""First kind that stays unchanged; its rows may be infinite throughout."""
_MOST_INFINITE: Final = 0.75
"""Most of a row that is minus infinity: what a mask leaves of the rest should not be nothing."""


def with_far_rows(prepared: PreparedWorkload, input_set: InputSet, rows: FarRows) -> InputSet:
    """Return a set with such rows; itself where no input has any."""
    changed = with_free_inputs(prepared, input_set, partial(_with_rows, rows=rows))
    return changed.as_stepped() if rows.is_stepped and changed is not input_set else changed


def far_rows(prepared: PreparedWorkload, *, of_columns: bool = False) -> FarRows:
    """Return the rows that the reference gives numbers on, of all inputs if it can be.

    Args:
        prepared: The workload.
        of_columns: Whether columns are asked for.
    """
    ordinary = prepared.shared_set(PREPARATION_SEED)
    floats = [i for i, tensor in enumerate(ordinary.inputs) if tensor.dtype in _BANDS]

    def is_taken(rows: FarRows, asked: Callable[[InputSet], bool] = is_defined) -> bool:
        changed = with_far_rows(prepared, ordinary, rows)
        return changed is not ordinary and asked(changed)

    plain = FarRows(of_columns=of_columns)
    found = _with_large(prepared, ordinary, floats, plain)
    for exponent, tried in _FARTHER.items() if found.large and prepared.traits.orders else ():
        farther = replace(found, exponent=exponent)
        if _has_no_size(prepared, tried) and is_taken(farther, is_well_defined):
            found = farther
            break
    if prepared.traits.has_matrix_products:
        return found  # what is a number there, as attention's rows without a key, is a convention
    if prepared.traits.combines_by_order:
        base = replace(found, has_endless=True, is_above=prepared.traits.looks_for_least)

        def is_endless(chosen: frozenset[int]) -> bool:
            return is_taken(replace(base, infinite=chosen), has_no_nan)

        endless = defined_inputs(floats, is_endless)
        if endless:
            return replace(base, infinite=endless)
    infinite = defined_inputs(floats, lambda chosen: is_taken(replace(plain, infinite=chosen)))
    if not infinite or not found.large:
        return replace(found, infinite=infinite)
    large, both = with_far_rows(prepared, ordinary, found), replace(found, infinite=infinite)
    outputs = defined_outputs(large)
    if outputs != well_defined_outputs(large):
        return replace(plain, infinite=infinite)  # by which what rounding decides there is told
    is_together = outputs <= defined_outputs(with_far_rows(prepared, ordinary, both))
    return both if is_together else found


def _with_large(
    prepared: PreparedWorkload, ordinary: InputSet, floats: Sequence[int], plain: FarRows
) -> FarRows:
    """Return rows with the large values that the reference takes: in all outputs, or in some."""
    # Which of several equal values is the largest is as open as what a product rounds to.
    may_be_stepped = not (prepared.module.names_places or prepared.traits.has_matrix_products)
    ways = [(is_well_defined, plain)]
    if may_be_stepped:
        ways.append((is_well_defined, replace(plain, is_stepped=True)))
    if len(ordinary.expected()) > 1:
        ways.append((is_well_defined_in_part, replace(plain, is_stepped=may_be_stepped)))
    for (is_taken, rows), any_sign in product(ways, (True, False)):
        signed = replace(rows, any_sign=any_sign)

        def has_large(
            chosen: frozenset[int],
            rows: FarRows = signed,
            is_taken: Callable[[InputSet], bool] = is_taken,
        ) -> bool:
            changed = with_far_rows(prepared, ordinary, replace(rows, large=chosen))
            return changed is not ordinary and is_taken(changed)

        large = defined_inputs(floats, has_large)
        if large:
            return replace(signed, large=large)
    return plain


def _has_no_size(prepared: PreparedWorkload, exponent: int) -> bool:
    exponents = {dtype: exponent for dtype in _BANDS if dtype is not torch.float16}
    return has_no_size(prepared, exponents)


def defined_inputs(
    inputs: Iterable[int], is_taken: Callable[[frozenset[int]], bool]
) -> frozenset[int]:
    """Return the inputs that may have certain rows: all, or those that may alone and together.

    Args:
        inputs: Those that are asked for, by index.
        is_taken: Says whether the reference gives numbers where some of them have such rows.
    """
    every = frozenset(inputs)
    if not every or is_taken(every):
        return every
    alone = frozenset(i for i in every if len(every) > 1 and is_taken(frozenset({i})))
    return alone if len(alone) < 2 or is_taken(alone) else frozenset({min(alone)})


def _with_rows(index: int, tensor: torch.Tensor, *, rows: FarRows) -> torch.Tensor:
    is_infinite, is_large = index in rows.infinite, index in rows.large
    if not (is_infinite or is_large) or tensor.dtype not in _BANDS or not tensor.numel():
        return tensor
    low, high = _BANDS[tensor.dtype]
    generator = generator_of(tensor)

    def moved(values: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
        shape, device = drawn.shape, values.device
        kind = torch.randint(0, _KINDS, shape, generator=generator, device=device)
        result = values
        if is_large:
            share = values.abs() / values.abs().amax(-1, keepdim=True).clamp(min=1e-30)
            size = low + (high - low) * share
            if rows.is_stepped:
                size = _STEP * (size / _STEP).round()
            if rows.exponent and values.dtype is not torch.float16:
                size = torch.where(drawn > 0.5, 2.0**rows.exponent * size, size)
            signs = values.sign()
            if rows.any_sign:
                signs = torch.where(kind == _INFINITE, -1.0, signs)
                signs = torch.where(kind == _INFINITE + 1, 1.0, signs)
            is_far = (kind >= _INFINITE) & (kind < _LARGE) & (values != 0)
            result = torch.where(is_far, (signs * size).to(values.dtype), result)
        if is_infinite:
            is_set = _in_a_run(values.shape[1], drawn, kind)
            if rows.has_endless:
                is_set |= kind == _LARGE
            result = torch.where(is_set, torch.inf if rows.is_above else -torch.inf, result)
        return result

    far = by_lines(tensor, lambda lines: by_row(lines, moved), of_columns=rows.of_columns)
    return far if keeps_structure(tensor, far) else tensor


def _in_a_run(width: int, drawn: torch.Tensor, kind: torch.Tensor) -> torch.Tensor:
    """Return which elements are minus infinity: at the beginning, at the end, or one in two."""
    place = torch.arange(width, device=drawn.device)
    length = 1 + (drawn * (_MOST_INFINITE * width - 1)).long()
    is_first, is_last = place < length, place >= width - length
    is_odd = (place % 2 == 1).expand(len(drawn), width)
    return torch.where(
        kind == 0, is_first, torch.where(kind == 1, is_last, (kind == _INFINITE - 1) & is_odd)
    )
