"""Samples, rows and channels of a tensor that change as a whole.

What a reference takes a mean or a norm of lies within a sample, or goes across all of them.
"""

import math
from collections.abc import Callable
from typing import Final

import torch

from evaluator_svc.judge.tensors.structure import keeps_structure
from evaluator_svc.judge.tensors.tensor_parts import generator_of

_LEAST_PLACES: Final = 4
_LEAST_SAMPLES: Final = 8
"""If there are fewer, they and their parts are taken together."""
_SHARE: Final = 8
"""One sample or channel in so many changes."""


def with_slices(
    tensor: torch.Tensor,
    change: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    *,
    is_across: bool,
) -> torch.Tensor:
    """Return a tensor of which an eighth of the samples or channels change, at random places.

    Of samples some change as a whole, some piece by piece, down to single rows. Zeros stay, as
    they may be a mask. The tensor itself where it has fewer than two axes or four places, or would
    lose its structure.

    Args:
        tensor: Ordinary values.
        change: Gives new values for chosen slices, from them and from a number between 0 and 1 for
            each piece, in as many axes.
        is_across: Whether channels change, with all samples, or samples with all channels.
    """
    if tensor.ndim < 2 or not tensor.numel():
        return tensor
    axis, whole = (1, tensor) if is_across else (0, _as_samples(tensor))
    size = whole.shape[axis]
    if size < _LEAST_PLACES:
        return tensor
    generator, device = generator_of(tensor), tensor.device
    depths = 1 if is_across else whole.ndim - 1
    count = min(max(size // _SHARE, depths), size // 2)
    places = torch.randperm(size, generator=generator, device=device)[:count]
    result = whole.clone(memory_format=torch.contiguous_format)
    for depth in range(min(depths, count)):
        chosen = places[depth::depths]
        old = whole.index_select(axis, chosen)
        pieces = [
            length if a == axis or (a <= depth and not is_across) else 1
            for a, length in enumerate(old.shape)
        ]
        drawn = torch.rand(pieces, generator=generator, device=device)
        new = change(old, drawn).to(tensor.dtype)
        result.index_copy_(axis, chosen, torch.where(old == 0, old, new))
    changed = result.reshape(tensor.shape)
    return changed if keeps_structure(tensor, changed) else tensor


def _as_samples(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor whose first axes are one, if they are short."""
    for axis in range(1, tensor.ndim):
        if math.prod(tensor.shape[:axis]) >= _LEAST_SAMPLES:
            return tensor.reshape(-1, *tensor.shape[axis:])
    return tensor.reshape(-1, tensor.shape[-1])
