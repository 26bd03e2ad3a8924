"""The largest over channels."""

import torch
from torch import nn

batch = 8
channels = 48
width = 256


class Model(nn.Module):
    """The largest over channels."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.amax(1)


def get_inputs():
    return [torch.randn(batch, channels, width)]


def get_init_inputs():
    return []
