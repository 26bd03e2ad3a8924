"""Values rounded to eighths, halves to the even one."""

import torch
from torch import nn

rows = 128
cols = 512


class Model(nn.Module):
    """Rounds to eighths."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.round(x * 8) / 8


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
