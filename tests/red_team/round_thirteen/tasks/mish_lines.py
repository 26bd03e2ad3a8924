"""Mish."""

import torch
from torch import nn
from torch.nn import functional

rows = 128
width = 256


class Model(nn.Module):
    """Mish."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.mish(x)


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return []
