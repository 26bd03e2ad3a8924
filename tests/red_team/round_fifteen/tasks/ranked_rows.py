"""The order of each row's elements, equal ones as they come."""

import torch
from torch import nn

rows = 256
width = 64


class Model(nn.Module):
    """The order of each row's elements, equal ones as they come."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.argsort(x, dim=-1, stable=True)


def get_inputs():
    x = torch.randn(rows, width)
    return [torch.where(torch.rand(rows, width) < 0.75, x, 0.0)]


def get_init_inputs():
    return []
