"""A softmax over channels."""

import torch
from torch import nn

batch = 8
channels = 48
places = 256


class Model(nn.Module):
    """A softmax over channels."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=1)


def get_inputs():
    return [torch.randn(batch, channels, places)]


def get_init_inputs():
    return []
