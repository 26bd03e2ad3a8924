"""Batch normalisation with running statistics."""

import torch
from torch import nn

batch = 16
channels = 32
length = 256


class Model(nn.Module):
    """Batch normalisation with running statistics."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


def get_inputs():
    return [torch.randn(batch, channels, length)]


def get_init_inputs():
    return [channels]
