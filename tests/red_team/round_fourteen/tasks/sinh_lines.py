"""Hyperbolic sines."""

import torch
from torch import nn

count = 65536


class Model(nn.Module):
    """Hyperbolic sines."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sinh(x)


def get_inputs():
    return [torch.randn(count)]


def get_init_inputs():
    return []
