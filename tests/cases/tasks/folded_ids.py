"""Ids of features, folded into a table."""

import torch
from torch import nn

rows = 512
cols = 512


class Model(nn.Module):
    """Ids of features, folded into a table."""

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return ids % 49999


def get_inputs():
    return [torch.randint(0, 1 << 20, (rows, cols))]


def get_init_inputs():
    return []
