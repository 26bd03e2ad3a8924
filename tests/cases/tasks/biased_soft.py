"""Softmax of scores with a mask that is added."""

import torch
from torch import nn

rows = 512
cols = 512


class Model(nn.Module):
    """Softmax of scores with a mask that is added."""

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x + mask, -1)


def get_inputs():
    mask = torch.zeros(rows, cols).masked_fill(torch.rand(rows, cols) < 0.5, float("-inf"))
    return [torch.randn(rows, cols), mask]


def get_init_inputs():
    return []
