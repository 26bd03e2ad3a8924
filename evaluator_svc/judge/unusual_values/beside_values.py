"""Elements close to one, whose logarithm is small, or to zero, where one and they add up to one.

A kernel that computes what is left as a difference from one keeps none of their digits.
"""

from collections.abc import Callable, Sequence
from typing import Final

import torch

from evaluator_svc.judge.tensors.scales import groups_of
from evaluator_svc.judge.tensors.tensor_parts import by_row, generator_of, parts_of

_EXPONENTS: Final = (-20.0, -4.0)
"""Binary logarithms of the distances: float32 has some bits of them beside one."""
_MOST_ALONE: Final = -16.0
"""Most from zero where all elements are compared in units of one scale."""


def is_fine(tensor: torch.Tensor) -> bool:
    """Return whether a tensor has elements of a format that holds such distances beside one."""
    return (
        tensor.is_floating_point()
        and tensor.numel() > 0
        and tensor.ndim > 0
        and torch.finfo(tensor.dtype).eps <= torch.finfo(torch.float32).eps
    )


def beside_one(tensor: torch.Tensor) -> torch.Tensor:
    """Return rows at a distance of their own from one, no two elements alike.

    Below one, and in every second row above it if anything is.
    """
    return _beside(tensor, lambda pairs: pairs < 0)


def beside_zero(tensor: torch.Tensor, signs: Sequence[float]) -> torch.Tensor:
    """Return rows at a distance of their own from zero, no two elements alike.

    A row is what shares a scale in an output of this shape. Of one row all are small.

    Args:
        tensor: Of any type; coarse formats stay as they are.
        signs: Those that elements may have: 1, -1 or both, of which each keeps its own then.
    """
    if not is_fine(tensor):
        return tensor
    groups = groups_of(tuple(tensor.shape))
    lines = tensor.reshape(1, -1) if groups.is_columns else groups.lines(tensor)
    generator, (near, far) = generator_of(tensor), _EXPONENTS

    def moved(values: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
        most = far
        if len(lines) == 1:
            drawn = torch.rand(drawn.shape, generator=generator, device=values.device)
            most = _MOST_ALONE
        own = values.sign() if len(signs) > 1 else signs[0] * values.sign().abs()
        return own * _distances(values, near + (most - near) * drawn, generator)

    return by_row(lines, moved).reshape(tensor.shape)


def beside_both(tensor: torch.Tensor, turn: int) -> torch.Tensor:
    """Return two rows as `beside_one`, two beside zero, and so on; `turn` tells the first."""
    return _beside(tensor, lambda pairs: (pairs + turn) % 2 == 1)


def _beside(
    tensor: torch.Tensor, is_near_zero: Callable[[torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    """Return rows beside one or zero; of pairs of rows, by their numbers, some are beside zero."""
    if not is_fine(tensor):
        return tensor
    has_larger = any(bool((part > 1).any()) for part in parts_of(tensor))
    generator, (near, far) = generator_of(tensor), _EXPONENTS

    def moved(values: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
        distance = _distances(values, near + (far - near) * drawn, generator)
        place = torch.arange(len(values), device=values.device)[:, None]
        is_above = (place % 2 == 1) & has_larger
        beside = 1.0 - torch.where(is_above, -distance, distance)
        return torch.where(is_near_zero(place // 2), distance * values.sign(), beside)

    return by_row(tensor, moved)


def _distances(
    values: torch.Tensor, exponents: torch.Tensor, generator: torch.Generator
) -> torch.Tensor:
    """Return numbers from half a power of two up to it, by the binary logarithms of rows."""
    share = torch.rand(values.shape, generator=generator, device=values.device)
    return (torch.exp2(exponents) * (0.5 + 0.5 * share)).to(values.dtype)
