"""Row sums of the positive part of a triangle of the product of two symmetric matrices.

Beside it the library may multiply. Symmetric inputs keep their values in timed calls.
"""

import torch
from torch import nn

n = 2048


class Model(nn.Module):
    """relu(tril(a @ b)), summed over rows."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.relu(torch.tril(a @ b)).sum(-1)


def get_inputs():
    a, b = torch.randn(n, n) / n**0.5, torch.randn(n, n) / n**0.5
    return [a + a.T, b + b.T]


def get_init_inputs():
    return []
