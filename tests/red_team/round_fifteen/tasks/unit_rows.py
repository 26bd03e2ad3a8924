"""Rows in units of their length, to which a small number is added."""

import torch
from torch import nn

rows = 512
width = 64


class Model(nn.Module):
    """Rows in units of their length, to which a small number is added."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / (torch.linalg.vector_norm(x, dim=-1, keepdim=True) + 1e-12)


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return []
