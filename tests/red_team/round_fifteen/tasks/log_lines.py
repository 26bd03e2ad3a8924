"""Natural logarithms."""

import torch
from torch import nn

count = 65536


class Model(nn.Module):
    """Natural logarithms."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.log(x)


def get_inputs():
    return [0.01 + torch.rand(count)]


def get_init_inputs():
    return []
