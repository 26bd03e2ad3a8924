"""A sigmoid in double precision."""

import torch
from torch import nn

count = 65536


class Model(nn.Module):
    """A sigmoid in double precision."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(x)


def get_inputs():
    return [torch.randn(count, dtype=torch.float64)]


def get_init_inputs():
    return []
