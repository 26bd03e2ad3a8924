"""Product of matrices of bytes."""

import torch
from torch import nn

rows = 128
cols = 128
terms = 1024


class Model(nn.Module):
    """Product of matrices of bytes."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a.int() @ b.int().T


def get_inputs():
    a = torch.randint(-8, 8, (rows, terms), dtype=torch.int8)
    b = torch.randint(-8, 8, (cols, terms), dtype=torch.int8)
    return [a, b]


def get_init_inputs():
    return []
