"""Weighted means, with a small number that keeps them defined."""

import torch
from torch import nn

rows = 128
width = 256


class Model(nn.Module):
    """Weighted means, with a small number that keeps them defined."""

    def forward(self, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return (x * w).sum(-1) / (w.sum(-1) + 1e-6)


def get_inputs():
    return [torch.randn(rows, width), torch.rand(rows, width)]


def get_init_inputs():
    return []
