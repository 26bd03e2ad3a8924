"""Shortest ways of two steps."""

import torch
from torch import nn

rows = 96
mid = 80
cols = 112


class Model(nn.Module):
    """Shortest ways of two steps."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return (a[:, :, None] + b[None, :, :]).amin(1)


def get_inputs():
    return [torch.rand(rows, mid), torch.rand(mid, cols)]


def get_init_inputs():
    return []
