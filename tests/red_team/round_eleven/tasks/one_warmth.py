"""Softmax of rows times a parameter."""

import torch
from torch import nn

rows = 128
cols = 256


class Model(nn.Module):
    """Softmax of rows times a parameter."""

    def __init__(self):
        super().__init__()
        self.warmth = nn.Parameter(torch.tensor(0.7))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x * self.warmth, dim=-1)


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
