"""Halves of the sums of whole numbers, rounded down."""

import torch
from torch import nn

rows = 128
width = 256


class Model(nn.Module):
    """Halves of the sums of whole numbers, rounded down."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return (a.long() + b.long()) // 2


def get_inputs():
    return [
        torch.randint(-1000, 1000, (rows, width), dtype=torch.int32),
        torch.randint(-1000, 1000, (rows, width), dtype=torch.int32),
    ]


def get_init_inputs():
    return []
