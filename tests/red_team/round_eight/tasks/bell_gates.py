"""GELU of one list times another."""

import torch
from torch import nn

rows = 512
cols = 1024


class Model(nn.Module):
    """GELU of one list times another."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.gelu(x) * y


def get_inputs():
    return [2.0 * torch.randn(rows, cols), torch.randn(rows, cols)]


def get_init_inputs():
    return []
