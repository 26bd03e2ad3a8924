"""Rows of floats whose halves are equal, or whose neighbours are in pairs, as rotary tables are.

A kernel may read one of the two. Draws change the one, and the other with it; between timed calls
both stay as they were drawn.
"""

from enum import Enum

import torch

from evaluator_svc.judge.reference.formats import computable


class EqualParts(Enum):
    """How the two values of each row lie that are the same."""

    HALVES = "equal halves"
    """Half a row apart: `cat([a, a], -1)`."""
    PAIRS = "equal pairs"
    """Beside each other: `a.repeat_interleave(2, -1)`."""


def equal_parts(tensor: torch.Tensor) -> EqualParts | None:
    """Return how all rows of a tensor repeat themselves; None: they do not, or hold one value."""
    if not tensor.is_floating_point() or not tensor.ndim or not tensor.numel():
        return None
    if tensor.shape[-1] % 2:
        return None
    rows = computable(tensor).reshape(-1, tensor.shape[-1])
    for parts in EqualParts:
        # One row tells most tensors at once.
        if all(torch.equal(*_both(some, parts)) for some in (rows[:1], rows)):
            return parts if bool((rows != rows[0, 0]).any()) else None
    return None


def one_part(tensor: torch.Tensor, parts: EqualParts) -> torch.Tensor:
    """Return what a tensor's rows hold twice, half as wide."""
    return _both(tensor, parts)[0]


def twice(part: torch.Tensor, parts: EqualParts) -> torch.Tensor:
    """Return rows that hold a part's rows twice."""
    if parts is EqualParts.HALVES:
        return torch.cat((part, part), dim=-1)
    return part.repeat_interleave(2, dim=-1)


def both_places(indices: torch.Tensor, width: int, parts: EqualParts) -> torch.Tensor:
    """Return flat indices of both values of what lies at flat indices into one part.

    Args:
        indices: Into the part, flat.
        width: Of the tensor's rows.
        parts: How its rows repeat themselves.
    """
    if parts is EqualParts.PAIRS:
        return torch.cat((2 * indices, 2 * indices + 1))
    half = width // 2
    first = indices + indices // half * half
    return torch.cat((first, first + half))


def _both(tensor: torch.Tensor, parts: EqualParts) -> tuple[torch.Tensor, torch.Tensor]:
    if parts is EqualParts.PAIRS:
        return tensor[..., ::2], tensor[..., 1::2]
    half = tensor.shape[-1] // 2
    return tensor[..., :half], tensor[..., half:]
