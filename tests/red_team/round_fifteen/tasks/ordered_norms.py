"""Norms of rows, of an order that is given."""

import torch
from torch import nn

rows = 512
width = 128


class Model(nn.Module):
    """Norms of rows, of an order that is given."""

    def forward(self, x: torch.Tensor, order: float) -> torch.Tensor:
        return torch.linalg.vector_norm(x, ord=order, dim=-1)


def get_inputs():
    return [torch.randn(rows, width), 3.0]


def get_init_inputs():
    return []
