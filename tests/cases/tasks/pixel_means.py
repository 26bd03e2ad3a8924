"""Means of pairs of integers, rounded down."""

import torch
from torch import nn

rows = 512
cols = 512


class Model(nn.Module):
    """Means of pairs of integers, rounded down."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return ((a.long() + b.long()) // 2).int()


def get_inputs():
    return [
        torch.randint(0, 4096, (rows, cols), dtype=torch.int32),
        torch.randint(0, 4096, (rows, cols), dtype=torch.int32),
    ]


def get_init_inputs():
    return []
