"""Rows of a large table, and the lower triangle of a product of two weights."""

import torch
from torch import nn

n = 320
entries = 40000


class Model(nn.Module):
    """Rows of a large table, and the lower triangle of a product of two weights."""

    def __init__(self, n: int, entries: int) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.randn(n, n) / n**0.5)
        self.b = nn.Parameter(torch.randn(n, n) / n**0.5)
        self.table = nn.Embedding(entries, n)

    def forward(self, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x) + torch.tril(self.a @ self.b) + self.table(index)


def get_inputs():
    return [torch.randn(n, n), torch.randint(0, entries, (n,))]


def get_init_inputs():
    return [n, entries]
