"""The largest of a row times how often it is there."""

import torch
from torch import nn

rows = 128
cols = 256


class Model(nn.Module):
    """The largest of a row times how often it is there."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        top = x.amax(-1, keepdim=True)
        return top[:, 0] * (x == top).sum(-1)


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
