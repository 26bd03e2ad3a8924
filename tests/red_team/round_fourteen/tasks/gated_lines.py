"""A product behind a gate."""

import torch
from torch import nn

rows = 128
depth = 64
width = 64


class Model(nn.Module):
    """A product behind a gate."""

    def forward(self, x: torch.Tensor, weight: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(gate) * (x @ weight)


def get_inputs():
    return [torch.randn(rows, depth), torch.randn(depth, width), torch.randn(rows, width)]


def get_init_inputs():
    return []
