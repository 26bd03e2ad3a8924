"""Means of 33 neighbours."""

import torch
from torch import nn

rows = 64
cols = 2048


class Model(nn.Module):
    """Averages over a window."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.avg_pool1d(x, 33, 1)


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
