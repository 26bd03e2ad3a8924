"""Rows in order or in turns, integers in runs: what numbers drawn one by one never are for long.

A kernel that looks back a bounded way, keeps a bounded number of records or counts in few bits is
right on random rows. Elements stay among those of their row, so that what a reference takes them
for stays as well.
"""

import math
from typing import Final

import torch

from evaluator_svc.judge.inputs.free_inputs import with_free_inputs
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload
from evaluator_svc.judge.reference.formats import FLOAT8
from evaluator_svc.judge.tensors.structure import points_one_way, structures
from evaluator_svc.judge.tensors.tensor_parts import generator_of_stream
from evaluator_svc.judge.unusual_values.unusual_places import may_be_an_accident, may_be_places

_LEAST_WIDTH: Final = 8
_PIECES: Final = 4
"""Rows that the elements of one axis alone are taken for."""
_KINDS: Final = 8
_RISES, _FALLS, _TURNS, _IS_ONE, _REPEATS = 0, 1, 2, 3, 4
"""Kinds of rows: a third one goes up and down in turn, the last two are of integers alone."""
_STAYS: Final = 5
"""From here on integers stay, or are in runs."""
_MEAN_RUNS: Final = (1.0, 8.0)
"""Binary logarithms of the mean length of runs."""
_MOST: Final = 1 << 22
"""Elements of a tensor that are put in order, in whole samples or rows: sorting more takes long."""
_STREAM: Final = 0x3C6E_F372_FE94_F82B
"""Tells these draws from those of the inputs."""


def with_ordered_rows(prepared: PreparedWorkload, input_set: InputSet) -> InputSet:
    """Return a set with such rows, at the same places of inputs of one shape.

    Inputs with a structure stay, and so do masks, places that are written to and lengths. The set
    itself where nothing else is there.
    """
    uses = prepared.input_uses

    def ordered(index: int, tensor: torch.Tensor) -> torch.Tensor:
        is_bound = index in uses.overwriting or index in uses.lengths or index in uses.steps
        if is_bound or not _is_free(tensor):
            return tensor
        # Of the shape: digits that are added up are to be in runs together.
        seed = input_set.seed ^ hash(tuple(tensor.shape))
        generator = generator_of_stream(_STREAM, seed, prepared.module.device)
        count = max(_MOST // max(tensor[0].numel(), 1), 1)
        return torch.cat((_ordered(tensor[:count], generator), tensor[count:]))

    return with_free_inputs(prepared, input_set, ordered)


def _is_free(tensor: torch.Tensor) -> bool:
    """Return whether elements are drawn one by one, and are more than a mask."""
    if not tensor.ndim or not tensor.numel() or tensor.dtype in (*FLOAT8, torch.bool):
        return False
    if not may_be_places(tensor):
        return not structures(tensor)
    if points_one_way(tensor):
        return False
    bound = structures(tensor)
    return not bound or (bound == {"permutation"} and may_be_an_accident(tensor))


def _ordered(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return a tensor with rows in order along the last axis, and along the one before it.

    Half of what lies along the one axis is ordered along the other: a tensor of two axes is so in
    its first rows along them, and in the others along its columns.
    """
    if tensor.ndim == 1:
        width = len(tensor) // _PIECES
        if width < _LEAST_WIDTH:
            return tensor
        pieces = tensor[: _PIECES * width].reshape(_PIECES, width)
        return torch.cat((_in_order(pieces, generator).reshape(-1), tensor[_PIECES * width :]))
    size, width = tensor.shape[-2:]
    half = size // 2 if size >= 2 * _LEAST_WIDTH else size
    result = tensor.clone(memory_format=torch.contiguous_format)
    if width >= _LEAST_WIDTH:
        result[..., :half, :] = _in_order(tensor[..., :half, :], generator)
    if half < size:
        columns = tensor[..., half:, :].transpose(-1, -2)
        result[..., half:, :] = _in_order(columns, generator).transpose(-1, -2)
    return result


def _in_order(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return rows that rise, fall or do both in turn.

    Of integers some stay, repeat their beginning, are of one value or have runs.
    """
    rows = tensor.reshape(-1, tensor.shape[-1])
    (count, width), device = rows.shape, rows.device
    kind = torch.randint(0, _KINDS, (count, 1), generator=generator, device=device)
    if tensor.is_floating_point():
        kind = torch.where(kind == _TURNS, kind, kind % 2)
    risen = rows.sort(-1).values
    result = torch.where(kind == _RISES, risen, torch.where(kind == _FALLS, risen.flip(-1), rows))
    place = torch.arange(width, device=device)
    # The lesser half at even places, the greater one between them.
    turn = place // 2 + place % 2 * ((width + 1) // 2)
    result = torch.where(kind == _TURNS, risen[:, turn], result)
    if not tensor.is_floating_point():
        low, high = _MEAN_RUNS
        mean = torch.rand((count, 1), generator=generator, device=device) * (high - low) + low
        ends = torch.rand(rows.shape, generator=generator, device=device) < torch.exp2(-mean)
        first = torch.where(ends & (kind != _IS_ONE), place, 0).cummax(-1).values
        in_runs = rows.gather(-1, first)
        result = torch.where((kind == _IS_ONE) | (kind > _STAYS), in_runs, result)
        share = torch.rand((count, 1), generator=generator, device=device)
        period = torch.exp2(1.0 + share * max(math.log2(width) - 2.0, 0.0)).long()
        result = torch.where(kind == _REPEATS, rows.gather(-1, place % period), result)
    return result.reshape(tensor.shape)
