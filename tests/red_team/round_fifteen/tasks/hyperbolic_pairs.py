"""Hyperbolic sines and tangents."""

import torch
from torch import nn

count = 65536


class Model(nn.Module):
    """Hyperbolic sines and tangents."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.sinh(x), torch.tanh(x)


def get_inputs():
    return [torch.randn(count)]


def get_init_inputs():
    return []
