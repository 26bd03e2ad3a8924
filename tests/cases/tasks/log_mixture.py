"""Logarithm of a mixture of positive densities."""

import torch
from torch import nn

rows = 2048
inner = 2048
cols = 2048


class Model(nn.Module):
    """Logarithm of a mixture of positive densities."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.log(a @ b)


def get_inputs():
    return [torch.rand(rows, inner), torch.rand(inner, cols)]


def get_init_inputs():
    return []
