"""Whether the order of a tensor's elements is an accident, so that some may change places.

True of labels, codes and masks that were drawn one by one. Not of what has an order: offsets,
lengths of segments, triangles, one of several in each row, coordinates whose columns mean different
things. A statistic of neighbours, rows and columns is held against the same elements in random
order; what could be either is taken for ordered. Elements change places in `call_inputs.py`.
"""

import math
from collections.abc import Iterator
from typing import Final

import torch

from evaluator_svc.judge.reference.formats import computable
from evaluator_svc.judge.tensors.structure import points_one_way, structures

_LEAST: Final = 32
"""Elements; fewer tell nothing."""
_SAMPLE: Final = 1 << 17
"""Elements at either end of a tensor that are looked at."""
_SHUFFLES: Final = 4
_DEVIATIONS: Final = 5.0
"""Of chance, within which a statistic is an accident's."""
_MARGIN: Final = 1.5
"""Over what shuffled elements reach, where chance is no normal distribution."""
_SAME: Final = 1e-9
"""Below it all means are the same but for rounding."""
_SEED: Final = 12


def is_exchangeable(tensor: torch.Tensor) -> bool:
    """Return whether any order of the elements could have been drawn as well."""
    if tensor.numel() < _LEAST or structures(tensor) & {"symmetric", "rising", "falling", "shares"}:
        return False
    if points_one_way(tensor):
        return False
    values = computable(tensor)
    low, high = float(values.min()), float(values.max())
    if not -float("inf") < low < high < float("inf"):
        return False
    return not (_has_mark(values) or _is_range(values, low, high) or _has_order(values))


def _has_mark(values: torch.Tensor) -> bool:
    """Return whether a single negative value stands for what is not there."""
    negative = values[values < 0]
    return bool(negative.numel()) and bool((negative == negative[0]).all())


def _is_range(values: torch.Tensor, low: float, high: float) -> bool:
    """Return whether each of consecutive numbers is there once: another input may undo that."""
    return high - low + 1 == values.numel() and len(torch.unique(values)) == values.numel()


def _has_order(values: torch.Tensor) -> bool:
    rows = _sample(values)
    deviation, flat = float(rows.std()), rows.reshape(-1)
    if deviation == 0.0 or _diagonal(values, rows) > _DEVIATIONS * deviation:
        return True
    generator = torch.Generator().manual_seed(_SEED)
    orders = [torch.randperm(len(flat), generator=generator) for _ in range(_SHUFFLES)]
    shuffled = [flat[order].view_as(rows) for order in orders]
    return any(
        abs(found - sum(chance) / _SHUFFLES) > _DEVIATIONS * math.sqrt(max(chance) + 1)
        for found, *chance in zip(*map(_counts, (rows, *shuffled)), strict=True)
    ) or any(
        found > max(_DEVIATIONS * deviation, _MARGIN * max(chance)) or found < _SAME < min(chance)
        for found, *chance in zip(*map(_distances, (rows, *shuffled)), strict=True)
    )


def _sample(values: torch.Tensor) -> torch.Tensor:
    """Return the first and the last rows, or of long ones the ends, as numbers on the host."""
    flat = values.reshape(-1)
    width = values.shape[-1] if values.ndim and values.shape[-1] <= _SAMPLE else 1
    most = _SAMPLE // width * width
    ends = flat if len(flat) <= 2 * most else torch.cat([flat[:most], flat[-most:]])
    return ends.to("cpu", torch.float64).reshape(-1, width)


def _counts(rows: torch.Tensor) -> Iterator[int]:
    """Yield how many neighbours rise, fall, are the same, and how often a row has a value again."""
    for part in (rows, rows.T):
        step = part.diff(dim=-1)
        yield from (int((step > 0).sum()), int((step < 0).sum()), int((step == 0).sum()))
        yield int((part.sort(dim=-1).values.diff(dim=-1) == 0).sum())


def _distances(rows: torch.Tensor) -> Iterator[float]:
    """Yield the greatest distance of a row's mean, of a column's, from that of all.

    In standard deviations of one that is drawn, times that of an element.
    """
    centred = rows - rows.mean()
    for dim in (0, 1):
        yield float(centred.mean(dim).abs().max()) * math.sqrt(rows.shape[dim])


def _diagonal(values: torch.Tensor, rows: torch.Tensor) -> float:
    """Return the same for the diagonals of square matrices."""
    if values.ndim < 2 or values.shape[-1] != values.shape[-2]:
        return 0.0
    diagonal = values.diagonal(dim1=-2, dim2=-1).to("cpu", torch.float64)
    distance = abs(float(diagonal.mean() - rows.mean()))
    return distance * math.sqrt(diagonal.numel())
