"""Sines, each times a factor."""

import torch
from torch import nn

rows = 512
cols = 1024


class Model(nn.Module):
    """Sines, each times a factor."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.sin(x) * y


def get_inputs():
    return [3.0 * torch.randn(rows, cols), torch.randn(rows, cols)]


def get_init_inputs():
    return []
