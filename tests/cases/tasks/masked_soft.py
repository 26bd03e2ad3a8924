"""Softmax of what a mask keeps of each row."""

import torch
from torch import nn

rows = 512
cols = 512


class Model(nn.Module):
    """Softmax of what a mask keeps of each row."""

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x.masked_fill(~mask, float("-inf")), -1)


def get_inputs():
    return [torch.randn(rows, cols), torch.rand(rows, cols) < 0.5]


def get_init_inputs():
    return []
