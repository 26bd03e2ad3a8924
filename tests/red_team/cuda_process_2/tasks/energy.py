"""Row sums of the positive lower triangle of a product of two symmetric matrices."""

import torch
from torch import nn

n = 2048


class Model(nn.Module):
    """Row sums of the positive lower triangle of a product of two symmetric matrices."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.relu(torch.tril(a @ b)).sum(-1)


def get_inputs():
    a, b = torch.randn(n, n) / n**0.5, torch.randn(n, n) / n**0.5
    return [a + a.T, b + b.T]


def get_init_inputs():
    return []
