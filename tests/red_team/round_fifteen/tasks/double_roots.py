"""Reciprocal square roots, in doubles."""

import torch
from torch import nn

count = 65536


class Model(nn.Module):
    """Reciprocal square roots, in doubles."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.rsqrt(x)


def get_inputs():
    return [0.5 + torch.rand(count, dtype=torch.float64)]


def get_init_inputs():
    return []
