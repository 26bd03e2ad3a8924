"""A linear layer with a square weight whose size is a power of two."""

import torch
from torch import nn

n = 2048


class Model(nn.Module):
    """A linear layer with a square weight whose size is a power of two."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.linear = nn.Linear(n, n)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


def get_inputs():
    return [torch.randn(16, n)]


def get_init_inputs():
    return [n]
