"""Batch norm and ReLU behind a convolution, at inference."""

import torch
from torch import nn

batch = 64
channels = 64
height = 56
width = 56


class NormRelu(nn.Module):
    """Normalises with running statistics."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return relu(norm(x))."""
        return torch.relu(self.norm(x))


Model = NormRelu


def get_inputs() -> list[torch.Tensor]:
    """Return feature maps."""
    return [torch.randn(batch, channels, height, width)]


def get_init_inputs() -> list[object]:
    """Return the number of channels."""
    return [channels]
