"""Rows bent by a number of their own; none bends a row by zero."""

import torch
from torch import nn

rows = 256
width = 128


class Model(nn.Module):
    """Rows bent by a number of their own; none bends a row by zero."""

    def forward(self, x: torch.Tensor, bend: torch.Tensor) -> torch.Tensor:
        return torch.where(bend == 0, x, torch.sin(bend * x) / bend)


def get_inputs():
    return [torch.randn(rows, width), torch.randn(rows, 1)]


def get_init_inputs():
    return []
