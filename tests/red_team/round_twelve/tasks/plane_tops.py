"""The largest of each plane."""

import torch
from torch import nn

batch = 8
channels = 12
height = 24
width = 40


class Model(nn.Module):
    """The largest of each plane."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.amax((2, 3))


def get_inputs():
    return [torch.randn(batch, channels, height, width)]


def get_init_inputs():
    return []
