"""Softmax over the groups of each sample."""

import torch
from torch import nn

batch = 64
groups = 32
width = 128


class Model(nn.Module):
    """Softmax over the groups of each sample."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, 1)


def get_inputs():
    return [torch.randn(batch, groups, width)]


def get_init_inputs():
    return []
