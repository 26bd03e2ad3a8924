"""Inputs times a gate of weights."""

import torch
from torch import nn

n = 1024


class Model(nn.Module):
    """Inputs times a gate of weights."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.gate = nn.Parameter(torch.randn(n, n))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.tanh(self.gate)


def get_inputs():
    return [torch.randn(n, n)]


def get_init_inputs():
    return [n]
