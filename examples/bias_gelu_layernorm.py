"""Bias, exact GELU and layer normalisation over the last axis, as after a linear layer."""

import torch
from torch import nn

batch = 2048
dim = 4096


class Model(nn.Module):
    """LayerNorm(GELU(x + bias))."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(dim))
        self.ln = nn.LayerNorm(dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.ln(nn.functional.gelu(x + self.bias))


def get_inputs():
    return [torch.randn(batch, dim)]


def get_init_inputs():
    return [dim]
