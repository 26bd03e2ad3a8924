"""Convolution with a filter of 3 by 3 and padding."""

import torch
from torch import nn

batch = 4
channels = 16
size = 64


class Model(nn.Module):
    """Convolution with a filter of 3 by 3 and padding."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, 16, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x)


def get_inputs():
    return [torch.randn(batch, channels, size, size)]


def get_init_inputs():
    return [channels]
