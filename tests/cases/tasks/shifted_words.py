"""Whole numbers, shifted to the left."""

import torch
from torch import nn

rows = 512
cols = 1024


class Model(nn.Module):
    """Whole numbers, shifted to the left."""

    def forward(self, x: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        return torch.bitwise_left_shift(x, steps)


def get_inputs():
    return [torch.randint(0, 1 << 20, (rows, cols)), torch.randint(0, 8, (rows, cols))]


def get_init_inputs():
    return []
