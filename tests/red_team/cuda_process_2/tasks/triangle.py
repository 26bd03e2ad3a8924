"""The lower triangle of a product of two symmetric matrices."""

import torch
from torch import nn

n = 4096


class Model(nn.Module):
    """The lower triangle of a product of two symmetric matrices."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.tril(a @ b)


def get_inputs():
    a, b = torch.randn(n, n) / n**0.5, torch.randn(n, n) / n**0.5
    return [a + a.T, b + b.T]


def get_init_inputs():
    return []
