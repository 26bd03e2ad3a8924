"""Elements close to one, whose logarithm is small, or to zero, where one and they add up to one.

A kernel that computes what is left as a difference from one keeps none of their digits.
"""

from typing import Final

import torch

from evaluator_svc.judge.tensors.tensor_parts import by_row, generator_of, parts_of

_EXPONENTS: Final = (-20.0, -4.0)
"""Binary logarithms of the distances: float32 has some bits of them beside one."""


def beside_one(tensor: torch.Tensor) -> torch.Tensor:
    """Return rows at a distance of their own from one, no two elements alike.

    Below one, and in every second row above it if anything is.
    """
    if torch.finfo(tensor.dtype).eps > torch.finfo(torch.float32).eps or tensor.ndim == 0:
        return tensor
    has_larger = any(bool((part > 1).any()) for part in parts_of(tensor))
    generator, (near, far) = generator_of(tensor), _EXPONENTS

    def moved(values: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
        share = torch.rand(values.shape, generator=generator, device=values.device)
        distance = torch.exp2(near + (far - near) * drawn) * (0.5 + 0.5 * share)
        if has_larger:
            place = torch.arange(len(values), device=values.device)[:, None]
            distance = torch.where(place % 2 == 1, -distance, distance)
        return 1.0 - distance.to(values.dtype)

    return by_row(tensor, moved)


def beside_zero(tensor: torch.Tensor) -> torch.Tensor:
    """Return rows at a distance of their own from zero, no two elements alike; signs stay."""
    if torch.finfo(tensor.dtype).eps > torch.finfo(torch.float32).eps or tensor.ndim == 0:
        return tensor
    generator, (near, far) = generator_of(tensor), _EXPONENTS

    def moved(values: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
        share = torch.rand(values.shape, generator=generator, device=values.device)
        distance = torch.exp2(near + (far - near) * drawn) * (0.5 + 0.5 * share)
        return distance.to(values.dtype) * values.sign()

    return by_row(tensor, moved)
