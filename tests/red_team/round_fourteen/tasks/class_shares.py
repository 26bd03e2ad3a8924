"""Shares of classes: a linear layer and a softmax."""

import torch
from torch import nn

rows = 128
depth = 64
width = 96


class Model(nn.Module):
    """Shares of classes: a linear layer and a softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.classes = nn.Linear(depth, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.classes(x), dim=-1)


def get_inputs():
    return [torch.randn(rows, depth)]


def get_init_inputs():
    return []
