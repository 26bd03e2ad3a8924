"""Elements close to one, whose logarithm is small, or to zero, where one and they add up to one.

A kernel that computes what is left as a difference from one keeps none of their digits.
"""

from collections.abc import Callable
from typing import Final

import torch

from evaluator_svc.judge.tensors.tensor_parts import by_row, generator_of, parts_of

_EXPONENTS: Final = (-20.0, -4.0)
"""Binary logarithms of the distances: float32 has some bits of them beside one."""


def beside_one(tensor: torch.Tensor) -> torch.Tensor:
    """Return rows at a distance of their own from one, no two elements alike.

    Below one, and in every second row above it if anything is.
    """
    return _beside(tensor, lambda pairs: pairs < 0)


def beside_zero(tensor: torch.Tensor) -> torch.Tensor:
    """Return rows at a distance of their own from zero, no two elements alike; signs stay."""
    return _beside(tensor, lambda pairs: pairs >= 0)


def beside_both(tensor: torch.Tensor, turn: int) -> torch.Tensor:
    """Return two rows as `beside_one`, two as `beside_zero`, and so on; `turn` tells the first."""
    return _beside(tensor, lambda pairs: (pairs + turn) % 2 == 1)


def _beside(
    tensor: torch.Tensor, is_near_zero: Callable[[torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    """Return rows beside one or zero; of pairs of rows, by their numbers, some are beside zero."""
    if torch.finfo(tensor.dtype).eps > torch.finfo(torch.float32).eps or tensor.ndim == 0:
        return tensor
    has_larger = any(bool((part > 1).any()) for part in parts_of(tensor))
    generator, (near, far) = generator_of(tensor), _EXPONENTS

    def moved(values: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
        share = torch.rand(values.shape, generator=generator, device=values.device)
        exponents = torch.exp2(near + (far - near) * drawn)
        distance = (exponents * (0.5 + 0.5 * share)).to(values.dtype)
        place = torch.arange(len(values), device=values.device)[:, None]
        is_above = (place % 2 == 1) & has_larger
        beside = 1.0 - torch.where(is_above, -distance, distance)
        return torch.where(is_near_zero(place // 2), distance * values.sign(), beside)

    return by_row(tensor, moved)
