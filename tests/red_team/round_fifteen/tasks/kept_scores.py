"""Scores that no mask of the least numbers leaves out."""

import torch
from torch import nn

rows = 256
width = 256


class Model(nn.Module):
    """Scores that no mask of the least numbers leaves out."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.where(x > torch.finfo(x.dtype).min / 2, x, 0.0)


def get_inputs():
    x = torch.randn(rows, width)
    return [torch.where(torch.rand(rows, width) < 0.8, x, torch.finfo(x.dtype).min)]


def get_init_inputs():
    return []
