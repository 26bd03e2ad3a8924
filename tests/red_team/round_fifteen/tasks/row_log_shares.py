"""Logarithms of a softmax of each row."""

import torch
from torch import nn

rows = 256
width = 256


class Model(nn.Module):
    """Logarithms of a softmax of each row."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.log_softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return []
