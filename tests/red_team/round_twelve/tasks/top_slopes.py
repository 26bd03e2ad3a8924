"""The gradient of the largest, shared by equal ones."""

import torch
from torch import nn

rows = 128
cols = 256


class Model(nn.Module):
    """The largest of each row."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.amax(-1)


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
