"""How high a circle is above its axis."""

import torch
from torch import nn

count = 65536


class Model(nn.Module):
    """How high a circle is above its axis."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sqrt(1 - x * x)


def get_inputs():
    return [1.2 * torch.rand(count) - 0.6]


def get_init_inputs():
    return []
