"""Product of two square matrices."""

import torch
from torch import nn

side = 128


class Model(nn.Module):
    """Product of two square matrices."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x @ y


def get_inputs():
    return [torch.randn(side, side), torch.randn(side, side)]


def get_init_inputs():
    return []
