"""Directions of vectors in a plane."""

import torch
from torch import nn

count = 1048576


class Model(nn.Module):
    """Directions of vectors in a plane."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x / torch.hypot(x, y)


def get_inputs():
    return [torch.randn(count), torch.randn(count)]


def get_init_inputs():
    return []
