"""Swish in float16."""

import torch
from torch import nn

rows = 1024
cols = 512


class Model(nn.Module):
    """Swish in float16."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.sigmoid(x)


def get_inputs():
    return [torch.randn(rows, cols, dtype=torch.float16)]


def get_init_inputs():
    return []
