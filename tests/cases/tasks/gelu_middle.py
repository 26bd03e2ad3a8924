"""GELU."""

import torch
from torch import nn

rows = 2048
cols = 4096


class Model(nn.Module):
    """GELU."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.gelu(x)


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
