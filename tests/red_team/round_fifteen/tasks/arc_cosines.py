"""Arc cosines of what lies in the middle."""

import torch
from torch import nn

count = 65536


class Model(nn.Module):
    """Arc cosines of what lies in the middle."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.acos(x)


def get_inputs():
    return [1.2 * torch.rand(count) - 0.6]


def get_init_inputs():
    return []
