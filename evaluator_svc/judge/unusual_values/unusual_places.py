"""Places, lengths, offsets and times that no draw has: nearly all alike, none, one, or all.

What lies behind a row's end is NaN, as memory that nobody wrote may be, where the reference does
not look at it. Places are taken from those of the draw, along the longest axis and alike in all
inputs that are as long, so that what belongs together stays together. Which inputs are places is
in `reference/input_uses.py`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import torch

from evaluator_svc.judge.inputs.defined_values import Places, UnreadTail
from evaluator_svc.judge.inputs.free_inputs import free_inputs
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PREPARATION_SEED, PreparedWorkload
from evaluator_svc.judge.reference.formats import FLOAT8
from evaluator_svc.judge.tensors.structure import (
    mirrored_places,
    points_back,
    points_on,
    structures,
)
from evaluator_svc.judge.tensors.tensor_parts import generator_of_stream
from evaluator_svc.judge.unusual_values.defined_results import is_defined

_LEAST_PLACES: Final = 4
_NEIGHBOURS: Final = 8
"""So many neighbours are alike, except those that are the one common place."""
_SHARE: Final = 0.6
"""Share of all places that are the one common place."""
_TABLE_SHARE: Final = 0.25
"""Share of places that are drawn from the whole table."""
_ACCIDENTS: Final = 3
"""Fewer equal ones than this, expected of numbers drawn one by one, may well be none."""
_SHORT_LENGTHS: Final = ((0, 1), (0,), (1,))
"""Lengths of rows, the best first."""
_STREAM: Final = 0x1F83_D9AB_FB41_BD6B
"""Tells these draws from those of the inputs."""


def with_unusual_places(prepared: PreparedWorkload, input_set: InputSet) -> InputSet:
    """Return a set with such places; itself where no input is one."""
    if not any(map(may_be_places, input_set.inputs)):
        return input_set
    return _with_places(prepared, input_set, prepared.once(_places))


def _places(prepared: PreparedWorkload) -> Places:
    """Return the places and lengths that the reference gives numbers on."""
    ordinary = prepared.shared_set(PREPARATION_SEED)

    def is_taken(places: Places) -> bool:
        return is_defined(_with_places(prepared, ordinary, places))

    has_lengths = bool(prepared.input_uses.lengths) and not prepared.traits.sizes_by_values
    tried = [Places(short_lengths=short) for short in _SHORT_LENGTHS if has_lengths]
    found = next(filter(is_taken, tried), Places(short_lengths=_SHORT_LENGTHS[-1]))
    unread = (
        replace(found, unread_tails=(tail,))
        for tail in (_tails(prepared, ordinary) if has_lengths else ())
    )
    tails = tuple(tail for places in unread if is_taken(places) for tail in places.unread_tails)
    whole = replace(found, has_whole_tables=True)
    has_whole_tables = bool(prepared.input_uses.tables) and is_taken(whole)
    return replace(found, unread_tails=tails, has_whole_tables=has_whole_tables)


def _with_places(prepared: PreparedWorkload, input_set: InputSet, places: Places) -> InputSet:
    uses = prepared.input_uses
    generator = generator_of_stream(_STREAM, input_set.seed, prepared.module.device)
    inputs, maps = list(input_set.inputs), dict[int, torch.Tensor]()
    for index in free_inputs(prepared, input_set):
        tensor = inputs[index]
        is_long = max(tensor.shape, default=0) >= _LEAST_PLACES
        if index in uses.overwriting or not (is_long and may_be_places(tensor)):
            continue
        bound = structures(tensor) - {"symmetric"}
        if index not in uses.places and "rising" not in bound:
            continue  # what rises may number pieces of a row, also where it is only compared
        if index in uses.lengths:
            inputs[index] = _other_lengths(
                tensor, uses.lengths[index], places.short_lengths, generator
            )
        elif "rising" in bound and bound <= {"rising", "permutation"}:
            is_distinct = index not in uses.places and bool((tensor.diff(dim=-1) > 0).all())
            uneven = _uneven_times if is_distinct else _uneven_offsets
            inputs[index] = uneven(tensor, generator)
        elif not bound or (bound == {"permutation"} and may_be_an_accident(tensor)):
            axis = max(range(tensor.ndim), key=lambda a: tensor.shape[a])
            size = tensor.shape[axis]
            if size not in maps:
                maps[size] = _skewed(size, generator)
            inputs[index] = tensor.index_select(axis, maps[size])
            if points_back(tensor):
                inputs[index] = _chained(inputs[index], generator)
            elif points_on(tensor):
                chained = _chained(mirrored_places(inputs[index]), generator)
                inputs[index] = mirrored_places(chained)
            elif places.has_whole_tables and index in uses.tables:
                inputs[index] = _of_whole_table(inputs[index], uses.tables[index], generator)
    for tail in places.unread_tails:
        is_behind = _behind(inputs[tail.lengths], inputs[tail.values], uses.lengths[tail.lengths])
        if is_behind is not None:
            inputs[tail.values] = inputs[tail.values].masked_fill(is_behind, torch.nan)
    return input_set.with_inputs(inputs)


def _tails(prepared: PreparedWorkload, input_set: InputSet) -> Iterator[UnreadTail]:
    """Yield the ends of rows of floats that the reference may not look at."""
    for lengths, whole in prepared.input_uses.lengths.items():
        for index, tensor in enumerate(input_set.inputs):
            if not tensor.is_floating_point() or tensor.dtype in FLOAT8:
                continue
            has_tails = _behind(input_set.inputs[lengths], tensor, whole) is not None
            if has_tails and not structures(tensor) and not prepared.fixed_inputs[index]:
                yield UnreadTail(values=index, lengths=lengths)


def _behind(lengths: torch.Tensor, tensor: torch.Tensor, whole: int) -> torch.Tensor | None:
    """Return which elements lie behind their rows' ends; None where these are no rows of it."""
    depth = lengths.ndim
    if not 0 < depth < tensor.ndim or tensor.shape[:depth] != lengths.shape:
        return None
    if tensor.shape[depth] != whole:
        return None
    is_behind = torch.arange(whole, device=tensor.device) >= lengths[..., None]
    return is_behind.reshape(*is_behind.shape, *(1 for _ in tensor.shape[depth + 1 :]))


def _chained(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return places that name one before them, in one half of a row the one just before."""
    width, device = tensor.shape[-1], tensor.device
    own = torch.arange(width, device=device)
    before = (own - 1).clamp(min=0)
    start = torch.randint(0, width - width // 2, (1,), generator=generator, device=device)
    is_chain = (own >= start) & (own < start + width // 2)
    return torch.where(is_chain, before, torch.minimum(tensor, before)).to(tensor.dtype)


def may_be_places(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is of integers, as places are."""
    return not tensor.is_floating_point() and tensor.dtype is not torch.bool


def may_be_an_accident(tensor: torch.Tensor) -> bool:
    """Return whether numbers drawn one by one may be as different as these."""
    width = tensor.shape[-1]
    low, high = int(tensor.min()), int(tensor.max())
    return width**2 < 2 * _ACCIDENTS * (high - low + 1)


def _skewed(size: int, generator: torch.Generator) -> torch.Tensor:
    """Return which place each one becomes: most of them one, others as their neighbour."""
    device = generator.device
    places = torch.arange(size, device=device)
    places -= places % _NEIGHBOURS
    one = torch.randint(0, size, (1,), generator=generator, device=device)
    is_one = torch.rand(size, generator=generator, device=device) < _SHARE
    return torch.where(is_one, one, places)


def _of_whole_table(tensor: torch.Tensor, count: int, generator: torch.Generator) -> torch.Tensor:
    """Return a tensor with a quarter of its places from all that there are, the last among them."""
    most = min(count - 1, torch.iinfo(tensor.dtype).max)
    shape, device = tensor.shape, tensor.device
    # Cut off, so that both ends are met more often.
    drawn = torch.randint(-1, most + 2, shape, generator=generator, device=device)
    is_other = torch.rand(shape, generator=generator, device=device) < _TABLE_SHARE
    return torch.where(is_other, drawn.clamp(0, most).to(tensor.dtype), tensor)


def _uneven_offsets(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return rows in order between the same ends: half is one value, with a long step beside it."""
    rows = tensor.reshape(-1, tensor.shape[-1])
    width, device = rows.shape[1], tensor.device
    if width <= _LEAST_PLACES:
        return tensor
    quarter = max(width // 4, 1)

    def drawn(least: int, most: int, count: int) -> torch.Tensor:
        return torch.randint(least, most, (count,), generator=generator, device=device)

    # Offsets leave a long stretch beside the one place; of numbers of segments it is the long one.
    one = drawn(quarter, width - quarter, 1).expand(width - 2 * quarter)
    places = torch.cat((drawn(0, quarter, quarter), one, drawn(width - quarter, width, quarter)))
    places = places.sort().values
    places[0], places[-1] = 0, width - 1
    return rows[:, places].reshape(tensor.shape)


def _uneven_times(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return rows of rising numbers between the same ends, of which a half has steps of one."""
    rows = tensor.reshape(-1, tensor.shape[-1])
    steps, device = rows.diff(dim=-1), tensor.device
    count = steps.shape[1]
    half = count // 2
    start = torch.randint(0, count - half + 1, (len(rows), 1), generator=generator, device=device)
    place = torch.arange(count, device=device)
    is_dense = (place >= start) & (place < start + half)
    rest = rows[:, -1:] - rows[:, :1] - torch.where(is_dense, 1, steps).sum(-1, keepdim=True)
    # What the dense half lacks lies right before it, or behind it.
    is_wide = place == torch.where(start > 0, start - 1, half).clamp(max=count - 1)
    new = torch.where(is_dense, 1, steps) + torch.where(is_wide, rest, 0)
    result = torch.cat((rows[:, :1], rows[:, :1] + new.cumsum(-1)), dim=-1)
    return result.to(tensor.dtype).reshape(tensor.shape)


def _other_lengths(
    tensor: torch.Tensor, whole: int, short: Sequence[int], generator: torch.Generator
) -> torch.Tensor:
    kind = torch.randint(0, 6, tensor.shape, generator=generator, device=tensor.device)
    result = torch.where(kind == 0, whole, tensor)
    for number, length in enumerate(short):
        result = torch.where(kind == 1 + number, length, result)
    return result.to(tensor.dtype)
