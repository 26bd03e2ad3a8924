"""Inputs changed in a few secret places, to see that outputs follow.

Elements are replaced by those of another draw at the same places, so that every value is one that
the reference's inputs can have. A tensor with a structure that single elements would break
(symmetric, sorted, a permutation, shares of a whole) stays as it is: a kernel may rely on it.
Knows nothing of shared buffers and of verdicts.
"""

from dataclasses import dataclass
from typing import Final

import torch

from evaluator_svc.judge.draws.input_set import InputSet
from evaluator_svc.judge.draws.structure import is_structured

_SHARE: Final = 64
"""Of a tensor's elements one in so many is replaced…"""
_RUN: Final = 32
"""…in runs of so many neighbours."""
_FEW: Final = 16
"""Elements that are replaced where only a few are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputChange:
    """What is changed in one input set."""

    other_seed: int
    """Where the new values come from; also decides the places."""
    is_sparse: bool
    """A few single elements instead of runs."""
    with_parameters: bool


def changed(input_set: InputSet, other: InputSet, change: InputChange) -> InputSet:
    """Return a copy of `input_set` with some elements of `other`; tensors unchanged are shared."""
    device = input_set.module.device
    generator = torch.Generator(device).manual_seed(change.other_seed)
    inputs = [
        _changed(tensor, new, generator, is_sparse=change.is_sparse)
        for tensor, new in zip(input_set.inputs, other.inputs, strict=True)
    ]
    state = dict(input_set.state)
    if change.with_parameters:
        state = {
            path: _changed(tensor, other.state[path], generator, is_sparse=change.is_sparse)
            for path, tensor in state.items()
        }
    return input_set.with_values(inputs, state)


def _changed(
    tensor: torch.Tensor, new: torch.Tensor, generator: torch.Generator, *, is_sparse: bool
) -> torch.Tensor:
    if tensor.shape != new.shape or not tensor.numel() or is_structured(tensor):
        return tensor
    places = _places(tensor.numel(), generator, is_sparse=is_sparse)
    result = tensor.clone(memory_format=torch.contiguous_format)
    result.view(-1)[places] = new.reshape(-1)[places]
    return tensor if torch.equal(result, tensor) else result


def _places(count: int, generator: torch.Generator, *, is_sparse: bool) -> torch.Tensor:
    """Return flat indices below `count`."""
    device = generator.device
    if is_sparse or count < _SHARE:
        size = min(_FEW, -(-count // 2))
        return torch.randint(count, (size,), generator=generator, device=device)
    run = min(_RUN, count // _SHARE)
    starts = torch.randint(
        count - run + 1, (-(-count // (_SHARE * run)),), generator=generator, device=device
    )
    return (starts[:, None] + torch.arange(run, device=device)).reshape(-1)
