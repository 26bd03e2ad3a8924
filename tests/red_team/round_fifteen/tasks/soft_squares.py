"""Losses that are squares near zero and lengths far from it."""

import torch
from torch import nn

count = 65536


class Model(nn.Module):
    """Losses that are squares near zero and lengths far from it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        squares = x * x
        return squares / (torch.sqrt(1 + squares) + 1)


def get_inputs():
    return [4 * torch.randn(count)]


def get_init_inputs():
    return []
