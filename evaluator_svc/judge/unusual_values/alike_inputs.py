"""Inputs that are alike: of the same values, rows of them moved by some places, or negated.

Of tensors that are drawn one by one no two are ever near each other, so that a distance is never
small, the best path of an alignment never far from the diagonal, rows that differ do so at
their beginning, and what is looked for in a longer row is never there. Nor are rows of one tensor
alike, or in another order: where the reference compares them with each other, some are.
"""

import math
from typing import Final

import torch

from evaluator_svc.judge.inputs.free_inputs import free_inputs
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PREPARATION_SEED, PreparedWorkload
from evaluator_svc.judge.reference.formats import FLOAT8
from evaluator_svc.judge.tensors.structure import points_one_way, structures
from evaluator_svc.judge.tensors.tensor_parts import BLOCK_ELEMENTS, generator_of_stream
from evaluator_svc.judge.unusual_values.defined_results import is_defined

_LEAST_LENGTH: Final = 8
"""Fewest places of a row that is moved."""
_UNMOVED_SHARE: Final = 3
"""One row in so many is not moved at all."""
_KINDS: Final = 8
_DIFFERS_LAST, _DIFFERS, _NEGATED, _EXCHANGED, _BALANCED, _FLIPPED = range(6)
"""Kinds of rows that are not moved; the others stay. Of integers some differ in place of signs.
The last three differ in a few elements, and sums of them are the same (`_change_few`)."""
_MOST_ORDER: Final = 6
"""Largest order of a difference that is added to a row."""
_MOST_CHANGE: Final = 0.25
"""Most that it adds, as a share of the range of a tensor's numbers: few are beyond that then."""
_BIT_SHARE: Final = 0.125
"""Of the elements of such rows, each in one bit."""
_LEAST_ROWS: Final = 4
_STREAM: Final = 0x1B87_3593_CC9E_2D51
"""Tells these draws from those of the inputs."""


def with_alike_inputs(prepared: PreparedWorkload, input_set: InputSet) -> InputSet:
    """Return a set in which inputs of one type and row shape have the values of the first of them.

    Of one that is compared with itself, every second row has those of another.

    Of others that have as many rows of another length, half of the rows have a stretch of its in
    common. The set itself where there are no two such inputs. Integers stay within the range that
    a tensor has, and so does what is never negative; a tensor that would lose its structure stays.
    """
    return _with_alike(prepared, input_set, has_negated=prepared.once(_takes_negated))


def _takes_negated(prepared: PreparedWorkload) -> bool:
    ordinary = prepared.shared_set(PREPARATION_SEED)
    return is_defined(_with_alike(prepared, ordinary, has_negated=True))


def _with_alike(prepared: PreparedWorkload, input_set: InputSet, *, has_negated: bool) -> InputSet:
    generator = generator_of_stream(_STREAM, input_set.seed, prepared.module.device)
    sources, inputs = dict[object, torch.Tensor](), list(input_set.inputs)
    longer = dict[object, torch.Tensor]()
    for index in free_inputs(prepared, input_set):
        tensor = inputs[index]
        if not _has_rows(tensor) or points_one_way(tensor):
            continue
        if index in prepared.self_comparisons and len(tensor) >= _LEAST_ROWS:
            inputs[index] = _with_alike_rows(tensor, generator)
        kind = (tensor.dtype, tensor.ndim, tensor.shape[_axis(tensor) :])
        source = sources.setdefault(kind, tensor)
        if source is not tensor:
            moved = _moved(source, tensor, generator, has_negated=has_negated)
            alike = _within(moved, tensor)
        else:
            row = longer.setdefault((tensor.dtype, tensor.shape[:-1]), tensor)
            if row.shape == tensor.shape:
                continue
            alike = _within(_with_stretches(row, tensor, generator), tensor)
        if structures(tensor) <= structures(alike):
            inputs[index] = alike
    return input_set.with_inputs(inputs)


def _has_rows(tensor: torch.Tensor) -> bool:
    if not tensor.ndim or not tensor.numel() or tensor.dtype in FLOAT8:
        return False
    return tensor.shape[_axis(tensor)] >= _LEAST_LENGTH


def _axis(tensor: torch.Tensor) -> int:
    """Return along which axis rows are moved: of sequences of vectors along the sequence."""
    return -1 if tensor.ndim < 3 else -2


def _with_alike_rows(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return a tensor of which every second row is the one before it, moved by some places."""
    moved = _moved(tensor.roll(1, 0), tensor, generator, has_negated=False)
    is_second = torch.arange(len(tensor), device=tensor.device) % 2 == 1
    result = torch.where(is_second.reshape(-1, *(1 for _ in tensor.shape[1:])), moved, tensor)
    return result if structures(tensor) <= structures(result) else tensor


def _moved(
    source: torch.Tensor, other: torch.Tensor, generator: torch.Generator, *, has_negated: bool
) -> torch.Tensor:
    """Return the rows of `source` in the shape of `other`, each moved by places of its own.

    Of those that are not moved some are negated, if they are of floats, and some differ at a place.
    """
    axis, device = _axis(source), source.device
    length = source.shape[axis]
    pieces = source.reshape(-1, *source.shape[axis:])
    count = other.shape[:axis].numel()
    # As many short ways as long ones, up to half of a row.
    drawn = torch.rand(count, generator=generator, device=device)
    shifts = torch.exp2(drawn * math.log2(length / 2)).long()
    is_unmoved = torch.randint(0, _UNMOVED_SHARE, (count,), generator=generator, device=device) == 0
    shifts = torch.where(is_unmoved, 0, shifts)
    kind = torch.randint(0, _KINDS, (count,), generator=generator, device=device)
    changed = _changed_places(torch.where(is_unmoved, kind, _KINDS), length, generator)
    is_negated = is_unmoved & (kind == _NEGATED) & (has_negated and source.is_floating_point())
    signs = torch.where(is_negated, -1, 1).to(source.dtype)
    result = torch.empty((count, *pieces.shape[1:]), dtype=source.dtype, device=device)
    bits = 1 if source.is_floating_point() else max(int(source.max()).bit_length(), 1)
    at_once = max(BLOCK_ELEMENTS // pieces[0].numel(), 1)
    for first in range(0, count, at_once):
        rows = torch.arange(first, min(first + at_once, count), device=device)
        places = (torch.arange(length, device=device) - shifts[rows, None]) % length
        is_changed = torch.arange(length, device=device) == changed[rows, None]
        taken = torch.where(is_changed, (places + 1) % length, places)
        row = (rows % len(pieces))[:, None]
        # Its neighbour's value stands there, or of integers its own but for one bit.
        values = pieces[row, taken]
        if not source.is_floating_point() and source.dtype is not torch.bool:
            bit = torch.randint(0, bits, taken.shape, generator=generator, device=device)
            share = torch.rand(taken.shape, generator=generator, device=device)
            is_one_bit = is_changed & (share < 1.0 - _BIT_SHARE)
            has_bits = is_unmoved & (kind == _NEGATED)
            is_bit = is_one_bit | (has_bits[rows, None] & (share < _BIT_SHARE))
            flipped = pieces[row, places] ^ _beside(torch.ones_like(bit) << bit, values)
            values = torch.where(_beside(is_bit, values), flipped.to(values.dtype), values)
        result[rows] = values * _beside(signs[rows, None], values) if has_negated else values
    _change_few(result, torch.where(is_unmoved, kind, _KINDS), bits, generator)
    return result.reshape(other.shape)


def _change_few(
    rows: torch.Tensor, kind: torch.Tensor, bits: int, generator: torch.Generator
) -> None:
    """Change a few elements of rows of some kinds, so that numbers which may stand for a row stay.

    Two exchanged keep every sum of single elements. Of integers the same bit of two keeps their
    exclusive-or, and a difference of n-th order, as +1, -3, +3, -1, all sums whose weights are a
    polynomial of the place below the n-th degree.

    Args:
        rows: Shape (rows, length) and more axes; changed where they lie.
        kind: Of each row.
        bits: Most bits of an integer.
        generator: Of places and sizes.
    """
    length, device = rows.shape[1], rows.device

    def drawn(most: int, count: int) -> torch.Tensor:
        return torch.randint(0, most, (count,), generator=generator, device=device)

    is_whole = not rows.is_floating_point() and rows.dtype is not torch.bool
    is_exchanged = kind == _EXCHANGED if is_whole else (kind >= _EXCHANGED) & (kind <= _FLIPPED)
    chosen = is_exchanged.nonzero().flatten()
    one, other = _two_places(length, drawn(length, len(chosen)), drawn(length - 1, len(chosen)))
    rows[chosen, one], rows[chosen, other] = rows[chosen, other], rows[chosen, one]
    if not is_whole or not len(rows):
        return
    chosen = (kind == _FLIPPED).nonzero().flatten()
    bit = (torch.ones_like(chosen) << drawn(bits, len(chosen))).to(rows.dtype)
    for place in _two_places(length, drawn(length, len(chosen)), drawn(length - 1, len(chosen))):
        rows[chosen, place] ^= bit.reshape(-1, *(1 for _ in rows.shape[2:]))
    low, high = (int(end) for end in torch.aminmax(rows))
    most = _most_order(high - low)
    order = torch.where(kind == _BALANCED, 1 + drawn(most, len(kind)), 0)
    for degree in range(1, most + 1):
        chosen = (order == degree).nonzero().flatten()
        step = 1 + drawn((length - 1) // degree, len(chosen))
        share = torch.rand(len(chosen), generator=generator, device=device)
        first = (share * (length - degree * step)).long()
        for term in range(degree + 1):
            at = first + term * step
            added = rows[chosen, at].long() + (-1) ** term * math.comb(degree, term)
            rows[chosen, at] = added.clamp(low, high).to(rows.dtype)


def _two_places(
    length: int, drawn: torch.Tensor, distance: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    return drawn, (drawn + 1 + distance) % length


def _most_order(span: int) -> int:
    """Return the largest order of a difference that is small beside the range of numbers."""
    orders = range(1, _MOST_ORDER + 1)
    return max((n for n in orders if math.comb(n, n // 2) <= _MOST_CHANGE * span), default=1)


def _with_stretches(
    source: torch.Tensor, other: torch.Tensor, generator: torch.Generator
) -> torch.Tensor:
    """Return rows of `other` of which half have a stretch in common with those of `source`.

    The whole of the shorter one, or its beginning.
    """
    rows, result = (t.reshape(-1, t.shape[-1]) for t in (source, other.clone()))
    (count, width), length, device = result.shape, rows.shape[1], source.device
    common = min(width, length)

    def drawn(most: int) -> torch.Tensor:
        return torch.randint(0, most, (count, 1), generator=generator, device=device)

    is_common, is_whole = drawn(2) == 0, drawn(2) == 0
    size = torch.where(is_whole, common, 1 + drawn(common))
    place = torch.arange(width, device=device) - drawn(width - common + 1)
    taken = (place + drawn(length - common + 1)).clamp(0, length - 1)
    stretch = rows.gather(1, taken)
    result = torch.where(is_common & (place >= 0) & (place < size), stretch, result)
    return result.reshape(other.shape)


def _beside(values: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """Return values of two axes with as many axes as rows have."""
    return values.reshape(*values.shape, *(1 for _ in rows.shape[2:]))


def _changed_places(kind: torch.Tensor, length: int, generator: torch.Generator) -> torch.Tensor:
    """Return the place of the one element that differs in rows of some kinds; -1: none does.

    In every second of these it is the last one.
    """
    drawn = torch.randint(0, length, kind.shape, generator=generator, device=kind.device)
    place = torch.where(kind == _DIFFERS_LAST, length - 1, drawn)
    return torch.where(kind <= _DIFFERS, place, -1)


def _within(values: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    """Return values in the range of a tensor that may stand for places, or is never negative."""
    if tensor.dtype is torch.bool:
        return values
    low, high = torch.aminmax(tensor)
    if not tensor.is_floating_point():
        return values.clamp(low, high)
    return values.abs() if bool(low >= 0) else values
