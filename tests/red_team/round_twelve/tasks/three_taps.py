"""A convolution of three taps over channels."""

import torch
from torch import nn

batch = 4
channels = 16
width = 1024


class Model(nn.Module):
    """A convolution along the last axis."""

    def __init__(self) -> None:
        super().__init__()
        self.taps = nn.Parameter(torch.randn(16, 16, 3) / 7)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.conv1d(x, self.taps, padding=1)


def get_inputs():
    return [torch.randn(batch, 16, width)]


def get_init_inputs():
    return []
