"""ReLU."""

import torch
from torch import nn

rows = 1024
cols = 1024


class Model(nn.Module):
    """ReLU."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
