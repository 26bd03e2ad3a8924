"""Batch normalisation with running statistics."""

import torch
from torch import nn

batch = 64
channels = 64
length = 256


class Model(nn.Module):
    """Batch normalisation with running statistics."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(channels)
        self.norm.running_var.copy_(torch.rand(channels) + 0.5)
        self.norm.running_mean.copy_(torch.randn(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


def get_inputs():
    return [torch.randn(batch, channels, length)]


def get_init_inputs():
    return []
