"""Rows that no draw has: masks of all, nothing, one or runs, shares of zero and one, other labels.

A mask that is the same in every draw, such as a triangle, keeps its rows, in another order.

What a mask leaves out is NaN, as padding may be, where the reference does not look at it.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import torch

from evaluator_svc.judge.inputs.defined_values import ExtremeRows, Unread
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PREPARATION_SEED, PreparedWorkload
from evaluator_svc.judge.reference.formats import FLOAT8
from evaluator_svc.judge.tensors.structure import structures, sums_to_one
from evaluator_svc.judge.tensors.tensor_parts import by_lines, generator_of_stream
from evaluator_svc.judge.unusual_values.defined_results import is_defined
from evaluator_svc.judge.unusual_values.unusual_places import may_be_an_accident

_SHARE: Final = 8
"""One row, or label, in so many is of each kind."""
_SOFT_SHARE: Final = 0.5
"""Of the labels of a loss that may be shares."""
_LEAST_ROWS: Final = 4
_FIRST: Final = 8
_RUNS: Final = 4
"""Kinds of runs in a mask: of zeros or ones, at the beginning or at the end."""
_ONE_KEPT, _ONE_LEFT_OUT = 4, 5
"""Numbers of the kinds of rows in which one element differs from all others."""
_STREAM: Final = 0x38B3_4AE5_A1E3_8B93
"""Distinguishes the seed of these draws from the seed of the inputs."""


_WIDEST_FIRST: Final = tuple(
    ExtremeRows(has_full=has_full, has_empty=has_empty, has_single=has_single)
    for has_single in (True, False)
    for has_full in (True, False)
    for has_empty in (True, False)
)


def extreme_rows(prepared: PreparedWorkload, *, of_columns: bool = False) -> ExtremeRows:
    """Return the rows that the reference gives numbers on; the last try where it does on none.

    Args:
        prepared: The workload.
        of_columns: Whether columns of masks are asked for.
    """
    ordinary = prepared.shared_set(PREPARATION_SEED)
    widest_first = [replace(rows, of_columns=of_columns) for rows in _WIDEST_FIRST]

    def is_taken(rows: ExtremeRows) -> bool:
        changed = with_extreme_rows(prepared, ordinary, rows)
        return changed is not ordinary and is_defined(changed)

    if with_extreme_rows(prepared, ordinary, widest_first[0]) is ordinary:
        return widest_first[-1]
    rows = next(filter(is_taken, widest_first), None)
    if rows is None or of_columns:
        return rows or widest_first[-1]
    pairs = (u for u in _pairs(ordinary) if not prepared.fixed_inputs[u.mask])
    unread = tuple(u for u in pairs if is_taken(replace(rows, unread=(u,))))
    every = replace(rows, unread=unread)
    return every if len(unread) < 2 or is_taken(every) else replace(rows, unread=unread[:1])


def _pairs(input_set: InputSet) -> Iterator[Unread]:
    """Yield what a mask may leave out of an input of floating point."""
    masks = [i for i, tensor in enumerate(input_set.inputs) if tensor.dtype is torch.bool]
    for index, tensor in enumerate(input_set.inputs):
        if not tensor.is_floating_point() or tensor.dtype in FLOAT8 or structures(tensor):
            continue
        for mask in masks:
            if _beside(input_set.inputs[mask], tensor) is not None:
                yield from (Unread(values=index, mask=mask, where=w) for w in (False, True))


def _beside(mask: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor | None:
    """Return a mask in the shape of the tensor whose elements it may be of; None: of none."""
    shape = tensor.shape
    if mask.ndim == 0 or mask.ndim > tensor.ndim:
        return None
    if mask.shape == shape[: mask.ndim]:
        return mask.reshape(*mask.shape, *(1 for _ in shape[mask.ndim :])).expand(shape)
    pairs = zip(mask.shape[::-1], shape[::-1], strict=False)
    is_broadcast = all(one in (1, size) for one, size in pairs)
    return mask.expand(shape) if is_broadcast else None


def with_extreme_rows(
    prepared: PreparedWorkload, input_set: InputSet, rows: ExtremeRows
) -> InputSet:
    """Return a set with such rows; itself where no input is a mask, shares or labels of a loss."""
    generator = generator_of_stream(_STREAM, input_set.seed, prepared.module.device)
    constants, fixed = prepared.task.constants, prepared.fixed_inputs
    inputs, uses = list(input_set.inputs), prepared.float_uses
    for index, (name, tensor) in enumerate(
        zip(input_set.arguments.names, input_set.inputs, strict=True)
    ):
        if name in constants or not tensor.numel() or tensor.dtype in FLOAT8:
            continue
        if fixed[index]:
            is_moved = not rows.of_columns
            inputs[index] = _in_other_rows(tensor, generator) if is_moved else tensor
            continue
        is_soft = uses is not None and index in uses.soft and tensor.is_floating_point()
        is_soft &= not rows.of_columns
        if is_soft:
            changed = _with_soft_labels(tensor, generator)
        elif _is_mask(tensor) and index not in prepared.input_uses.ignored:
            changed = _with_whole_rows(tensor, generator, rows)
        elif _is_added(tensor):
            kept = _with_whole_rows(tensor == 0, generator, rows)
            changed = _biases(kept, tensor, generator)
        elif rows.of_columns:
            changed = tensor
        elif tensor.is_floating_point():
            changed = _with_single_shares(tensor, generator)
        else:
            changed = _with_ignored(prepared, index, tensor, generator)
        bound = structures(tensor)
        if _is_added(tensor) or is_soft:
            bound -= {"labels"}  # biases take the place of zeros that were added, shares theirs
        elif index in prepared.input_uses.ignored and may_be_an_accident(tensor):
            bound -= {"permutation"}
        if changed is not tensor and bound <= structures(changed):
            inputs[index] = changed
    for unread in rows.unread:
        mask = _beside(inputs[unread.mask], inputs[unread.values])
        if mask is not None:
            is_unread = mask if unread.where else ~mask
            inputs[unread.values] = inputs[unread.values].masked_fill(is_unread, torch.nan)
    return input_set.with_inputs(inputs)


def _is_added(tensor: torch.Tensor) -> bool:
    """Return whether a tensor holds zero and minus infinity, as a mask that is added does."""
    if not tensor.is_floating_point() or tensor.ndim < 2:
        return False
    is_zero, is_infinite = tensor == 0, tensor == -torch.inf
    return all(bool(some.any()) for some in (is_zero, is_infinite)) and bool(
        (is_zero | is_infinite).all()
    )


def _biases(kept: torch.Tensor, tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return a mask that is added, with biases where it keeps something."""
    shape, device = tensor.shape, tensor.device
    drawn = torch.randn(shape, generator=generator, device=device).to(tensor.dtype)
    return torch.where(kept, drawn, -torch.inf)


def _is_mask(tensor: torch.Tensor) -> bool:
    """Return whether a tensor holds zeros and ones, and not as many in each row."""
    if not tensor.ndim:
        return False
    flat = tensor.reshape(-1)
    # A few elements tell most tensors at once.
    if not all(bool(((part == 0) | (part == 1)).all()) for part in (flat[:_FIRST], flat)):
        return False
    counts = _pieces(tensor).count_nonzero(-1)
    return bool((counts != counts.reshape(-1)[0]).any())


def _pieces(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor, of one axis as rows of some length."""
    if tensor.ndim > 1:
        return tensor
    width = len(tensor) // _LEAST_ROWS
    return tensor[: _LEAST_ROWS * width].reshape(_LEAST_ROWS, width)


def _with_whole_rows(
    tensor: torch.Tensor, generator: torch.Generator, extremes: ExtremeRows
) -> torch.Tensor:
    """Return a mask with rows of one value, and with runs at the ends of half of the others.

    Or with such columns; of one axis, pieces of it are rows.
    """
    if tensor.ndim == 1 and not extremes.of_columns:
        pieces = _pieces(tensor)
        changed = _with_extreme_lines(pieces, generator, extremes).reshape(-1)
        return torch.cat((changed, tensor[pieces.numel() :]))
    return by_lines(
        tensor,
        lambda lines: _with_extreme_lines(lines, generator, extremes),
        of_columns=extremes.of_columns,
    )


def _with_extreme_lines(
    tensor: torch.Tensor, generator: torch.Generator, extremes: ExtremeRows
) -> torch.Tensor:
    full, empty = _chosen_rows(tensor, generator)
    result = tensor.clone(memory_format=torch.contiguous_format)
    rows = result.view(-1, tensor.shape[-1])
    count, width = rows.shape
    if width > 1 and not structures(tensor) & {"rising", "falling"}:
        shape, device = (count, 1), tensor.device
        kind = torch.randint(0, 2 * _RUNS, shape, generator=generator, device=device)
        length = torch.randint(1, width, shape, generator=generator, device=device)
        place = torch.arange(width, device=device)
        distance = torch.where(kind % 2 == 0, place, width - 1 - place)
        is_one, has_run = kind >= _RUNS // 2, kind < _RUNS
        if extremes.has_single:
            single = torch.randint(0, width, shape, generator=generator, device=device)
            for of_kind, is_other in (
                (_ONE_KEPT, place == single),
                (_ONE_LEFT_OUT, place != single),
            ):
                rows[:] = torch.where(kind == of_kind, is_other.to(tensor.dtype), rows)
        # Behind its run a row is the other: no run is the whole row.
        ended = torch.where(has_run & (distance == length), ~is_one, rows.bool())
        rows[:] = torch.where(has_run & (distance < length), is_one, ended).to(tensor.dtype)
    if extremes.has_full:
        rows[full] = 1
    if extremes.has_empty:
        rows[empty] = 0
    return result


def _in_other_rows(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return a mask that no draw changes with its rows in another order; else the tensor."""
    is_mask = tensor.dtype is torch.bool or _is_added(tensor)
    if not is_mask or not _is_mask(tensor != 0):
        return tensor
    order = torch.randperm(tensor.shape[-2], generator=generator, device=tensor.device)
    return tensor[..., order, :]


def _with_single_shares(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    if tensor.ndim < 2 or not sums_to_one(tensor):
        return tensor
    single, half = _chosen_rows(tensor, generator)
    result, width = tensor.clone(memory_format=torch.contiguous_format), tensor.shape[-1]
    rows, device = result.view(-1, width), tensor.device
    places = torch.randint(0, width, (len(single), 1), generator=generator, device=device)
    rows[single] = torch.zeros_like(rows[single]).scatter_(1, places, 1.0)
    stays = torch.rand((len(half), width), generator=generator, device=device) < 0.5
    stays[:, 0] |= ~stays.any(-1)
    kept = torch.where(stays, rows[half].double(), 0.0)
    rows[half] = (kept / kept.sum(-1, keepdim=True)).to(tensor.dtype)
    return result


def _with_soft_labels(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return labels of which half are shares of both classes, if they are classes or shares."""
    low, high = torch.aminmax(tensor)
    if bool(low < 0) or bool(high > 1):
        return tensor
    shape, device = tensor.shape, tensor.device
    shares = torch.rand(shape, generator=generator, device=device).to(tensor.dtype)
    is_soft = torch.rand(shape, generator=generator, device=device) < _SOFT_SHARE
    return torch.where(is_soft, shares, tensor)


def _with_ignored(
    prepared: PreparedWorkload, index: int, tensor: torch.Tensor, generator: torch.Generator
) -> torch.Tensor:
    label = prepared.input_uses.ignored.get(index)
    if label is None or tensor.numel() < _LEAST_ROWS:
        return tensor
    drawn = torch.randint(0, _SHARE, tensor.shape, generator=generator, device=tensor.device)
    is_ignored = drawn == 0
    is_ignored.view(-1)[0] = False
    is_ignored.view(-1)[-1] = True
    return torch.where(is_ignored, label, tensor)


def _chosen_rows(
    tensor: torch.Tensor, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the numbers of some rows, and of as many others; none where rows are few."""
    count = tensor.shape[:-1].numel()
    each = max(count // _SHARE, 1) if count >= _LEAST_ROWS else 0
    order = torch.randperm(count, generator=generator, device=tensor.device)
    return order[:each], order[each : 2 * each]
