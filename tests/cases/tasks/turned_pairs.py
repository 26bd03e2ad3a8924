"""Rotary embedding with a table whose halves are alike."""

import torch
from torch import nn

heads = 8
rows = 256
width = 64


class Model(nn.Module):
    """Rotary embedding with a table whose halves are alike."""

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        low, high = x.chunk(2, -1)
        return x * cos + torch.cat([-high, low], -1) * sin


def get_inputs():
    angles = 6.0 * torch.rand(rows, width // 2)
    angles = torch.cat([angles, angles], -1)
    return [torch.randn(heads, rows, width), angles.cos(), angles.sin()]


def get_init_inputs():
    return []
