"""Clips each column at a bound of its own."""

import torch
from torch import nn

rows = 1024
cols = 512


class Model(nn.Module):
    """Clips each column at a bound of its own."""

    def forward(self, x: torch.Tensor, low: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
        return torch.maximum(torch.minimum(x, high), low)


def get_inputs():
    return [torch.randn(rows, cols), -torch.rand(cols) - 6.0, torch.rand(cols) + 6.0]


def get_init_inputs():
    return []
