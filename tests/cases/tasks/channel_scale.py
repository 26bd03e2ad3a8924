"""Scale and shift of channels."""

import torch
from torch import nn

batch = 8
channels = 64
length = 256


class Model(nn.Module):
    """Scale and shift of channels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.rand(channels, 1) + 0.5)
        self.shift = nn.Parameter(torch.randn(channels, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.silu(x * self.scale + self.shift)


def get_inputs():
    return [torch.randn(batch, channels, length)]


def get_init_inputs():
    return [channels]
