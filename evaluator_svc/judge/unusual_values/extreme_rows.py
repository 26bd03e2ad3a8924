"""Rows that no draw has: masks that keep all or nothing, shares of zero and one, ignored labels."""

from typing import Final

import torch

from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload
from evaluator_svc.judge.reference.formats import FLOAT8
from evaluator_svc.judge.tensors.structure import structures, sums_to_one
from evaluator_svc.judge.tensors.tensor_parts import generator_of_stream

_SHARE: Final = 8
"""One row, or label, in so many is of each kind."""
_LEAST_ROWS: Final = 4
_FIRST: Final = 8
_STREAM: Final = 0x38B3_4AE5_A1E3_8B93
"""Tells these draws from those of the inputs."""


def with_extreme_rows(
    prepared: PreparedWorkload, input_set: InputSet, *, has_empty: bool
) -> InputSet:
    """Return a set with such rows; itself where no input is a mask, shares or labels of a loss.

    Args:
        prepared: The workload.
        input_set: Ordinary inputs of it.
        has_empty: Whether some rows of a mask keep nothing; else none do.
    """
    generator = generator_of_stream(_STREAM, input_set.seed, prepared.module.device)
    constants, fixed = prepared.task.constants, prepared.fixed_inputs
    inputs = list(input_set.inputs)
    for index, (name, tensor) in enumerate(
        zip(input_set.arguments.names, input_set.inputs, strict=True)
    ):
        if name in constants or fixed[index] or not tensor.numel() or tensor.dtype in FLOAT8:
            continue
        if _is_mask(tensor):
            changed = _with_full_rows(tensor, generator, has_empty=has_empty)
        elif tensor.is_floating_point():
            changed = _with_single_shares(tensor, generator)
        else:
            changed = _with_ignored(prepared, index, tensor, generator)
        if changed is not tensor and structures(tensor) <= structures(changed):
            inputs[index] = changed
    return input_set.with_inputs(inputs)


def _is_mask(tensor: torch.Tensor) -> bool:
    """Return whether a tensor holds zeros and ones, and not as many in each row."""
    if tensor.ndim < 2:
        return False
    flat = tensor.reshape(-1)
    # A few elements tell most tensors at once.
    if not all(bool(((part == 0) | (part == 1)).all()) for part in (flat[:_FIRST], flat)):
        return False
    counts = tensor.count_nonzero(-1)
    return bool((counts != counts.reshape(-1)[0]).any())


def _with_full_rows(
    tensor: torch.Tensor, generator: torch.Generator, *, has_empty: bool
) -> torch.Tensor:
    full, empty = _chosen_rows(tensor, generator)
    result = tensor.clone(memory_format=torch.contiguous_format)
    rows = result.view(-1, tensor.shape[-1])
    rows[full] = 1
    if has_empty:
        rows[empty] = 0
    return result


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
