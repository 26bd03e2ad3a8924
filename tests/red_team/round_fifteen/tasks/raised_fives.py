"""Powers with a factor before them and behind, and a number added."""

import torch
from torch import nn

count = 65536


class Model(nn.Module):
    """Powers with a factor before them and behind, and a number added."""

    def forward(
        self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, x: torch.Tensor, y: torch.Tensor
    ) -> torch.Tensor:
        return a + b * torch.pow(x, y) * c


def get_inputs():
    return [
        torch.randn(count),
        torch.randn(count),
        torch.randn(count),
        torch.rand(count) + 0.25,
        torch.randn(count),
    ]


def get_init_inputs():
    return []
