"""Sums of columns."""

import torch
from torch import nn

rows = 256
cols = 128


class Model(nn.Module):
    """Sums of columns."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sum(0)


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
