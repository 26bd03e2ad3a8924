"""The largest feature of a linear layer."""

import torch
from torch import nn

rows = 128
width = 64
features = 96


class Model(nn.Module):
    """The largest feature of a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(width, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x).amax(-1)


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return []
