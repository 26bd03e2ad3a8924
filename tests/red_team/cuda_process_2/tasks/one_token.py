"""A linear layer on a single row, as when one token is made after the other."""

import torch
from torch import nn

inner = 8192
cols = 4096


class Model(nn.Module):
    """A linear layer on a single row, as when one token is made after the other."""

    def __init__(self, inner: int, cols: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inner, cols, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


def get_inputs():
    return [torch.randn(1, inner)]


def get_init_inputs():
    return [inner, cols]
