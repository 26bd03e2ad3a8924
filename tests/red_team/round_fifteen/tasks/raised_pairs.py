"""Each number to the power of another."""

import torch
from torch import nn

count = 65536


class Model(nn.Module):
    """Each number to the power of another."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.pow(x, y)


def get_inputs():
    return [torch.rand(count) + 0.25, torch.randn(count)]


def get_init_inputs():
    return []
