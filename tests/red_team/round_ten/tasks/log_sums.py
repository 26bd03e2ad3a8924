"""Logarithms of sums of what two lists are logarithms of."""

import torch
from torch import nn

rows = 512
cols = 1024


class Model(nn.Module):
    """Logarithms of sums of what two lists are logarithms of."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.logaddexp(a, b)


def get_inputs():
    return [torch.randn(rows, cols), torch.randn(rows, cols)]


def get_init_inputs():
    return []
