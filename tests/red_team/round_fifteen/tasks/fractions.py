"""What is left of numbers beside their whole parts."""

import torch
from torch import nn

count = 65536


class Model(nn.Module):
    """What is left of numbers beside their whole parts."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x - torch.floor(x)


def get_inputs():
    return [100 * torch.randn(count)]


def get_init_inputs():
    return []
