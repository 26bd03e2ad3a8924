"""A softmax of each row, a hundred times as warm."""

import torch
from torch import nn

rows = 256
width = 256


class Model(nn.Module):
    """A softmax of each row, a hundred times as warm."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x / 100, dim=-1)


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return []
