"""Rows of one draw that are of different distributions, block by block.

Of a workload that is too large to be tried on each distribution, one draw so tells of all that can
be told row by row. A row is what one place of a tensor's first axes holds, as a scale is of the
tolerance; rows of several inputs with the same first axes are of the same distribution.
"""

import math
import random
from collections.abc import Mapping, Sequence
from typing import Final

import torch

from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload
from evaluator_svc.judge.tensors.structure import keeps_structure
from evaluator_svc.judge.unusual_values.distributions import with_distribution
from kernel_foundry.domain.admission import Distribution

_BLOCKS_OF_EACH: Final = 4
"""Blocks of rows of each distribution, and as many that stay ordinary."""
_LEAST_ROW: Final = 16
"""Fewest elements of a row: shorter ones make no distribution."""


def with_mixed_rows(
    prepared: PreparedWorkload, ordinary: InputSet, distributions: Sequence[Distribution]
) -> InputSet:
    """Return a copy of `ordinary` with blocks of rows of each distribution, and ordinary ones.

    A tensor of too few rows stays, and so does one that would lose its structure.

    Args:
        prepared: The workload.
        ordinary: A draw of it.
        distributions: Of inputs.
    """
    kinds = (None, *distributions)
    least = _BLOCKS_OF_EACH * len(kinds)
    counts = {i: _row_count(t, least) for i, t in enumerate(ordinary.inputs)}
    inputs = list(ordinary.inputs)
    for count in sorted(set(filter(None, counts.values()))):
        chosen = [i for i, rows in counts.items() if rows == count]
        lines = {i: inputs[i].reshape(count, -1) for i in chosen}
        for i, mixed in _mixed(prepared, ordinary, lines, count, kinds).items():
            result = mixed.reshape(inputs[i].shape)
            inputs[i] = result if keeps_structure(inputs[i], result) else inputs[i]
    return ordinary.with_values(inputs, ordinary.state)


def _row_count(tensor: torch.Tensor, least: int) -> int:
    """Return the places of the first axes that are as many as have to be; 0 where none are."""
    for axis in range(1, tensor.ndim):
        count = math.prod(tensor.shape[:axis])
        if count >= least:
            is_long = tensor.numel() >= _LEAST_ROW * count
            return count if is_long and tensor.is_floating_point() else 0
    return 0


def _mixed(
    prepared: PreparedWorkload,
    ordinary: InputSet,
    lines: Mapping[int, torch.Tensor],
    count: int,
    kinds: Sequence[Distribution | None],
) -> dict[int, torch.Tensor]:
    """Return the rows of some inputs, of which each is of a distribution."""
    order = list(kinds) * _BLOCKS_OF_EACH
    random.Random(ordinary.seed).shuffle(order)
    ends = [count * (n + 1) // len(order) for n in range(len(order))]
    results = {i: rows.clone() for i, rows in lines.items()}
    for kind in kinds:
        if kind is None:
            continue
        blocks = [range(ends[n - 1] if n else 0, ends[n]) for n, k in enumerate(order) if k is kind]
        places = torch.tensor([place for block in blocks for place in block])
        taken = list(ordinary.inputs)
        for i, rows in lines.items():
            at = places.to(rows.device)
            taken[i] = rows[at].reshape(len(places), *_shape_of_row(ordinary.inputs[i], count))
        changed = with_distribution(prepared, ordinary.with_values(taken, ordinary.state), kind)
        for i, result in results.items():
            result[places.to(result.device)] = changed.inputs[i].reshape(len(places), -1)
    return results


def _shape_of_row(tensor: torch.Tensor, count: int) -> tuple[int, ...]:
    axis = next(a for a in range(1, tensor.ndim) if math.prod(tensor.shape[:a]) == count)
    return tuple(tensor.shape[axis:])
