"""Transpose of a matrix."""

import torch
from torch import nn

rows = 1024
cols = 768


class Model(nn.Module):
    """Transpose of a matrix."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.t().contiguous()


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
