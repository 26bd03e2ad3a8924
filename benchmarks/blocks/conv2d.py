"""A 3 x 3 convolution of float32 images with bias, 256 channels to 256, 32 images of 56 x 56."""

import torch
from torch import nn

images = 32
channels = 256
filters = 256
height = 56
width = 56


class Model(nn.Module):
    """The operator."""

    def __init__(self, channels: int, filters: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the images' convolution."""
        out: torch.Tensor = self.conv(x)
        return out


def get_inputs() -> list[torch.Tensor]:
    """Return the images."""
    return [torch.randn(images, channels, height, width)]


def get_init_inputs() -> list[object]:
    """Return the channels of images and of the result."""
    return [channels, filters]
