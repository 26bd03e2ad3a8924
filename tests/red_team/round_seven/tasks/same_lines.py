"""Which lines of two texts are the same."""

import torch
from torch import nn

rows = 2048
cols = 128


class Model(nn.Module):
    """Which lines of two texts are the same."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return (a == b).all(-1)


def get_inputs():
    a = torch.randint(0, 60, (rows, cols))
    return [a, torch.where(torch.rand(rows, 1) < 0.5, a, torch.randint(0, 60, (rows, cols)))]


def get_init_inputs():
    return []
