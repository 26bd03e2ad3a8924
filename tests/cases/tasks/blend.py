"""One tensor plus a share of another."""

import torch
from torch import nn

rows = 512
cols = 512


class Model(nn.Module):
    """One tensor plus a share of another."""

    def forward(self, x: torch.Tensor, y: torch.Tensor, share: float) -> torch.Tensor:
        return x + share * y


def get_inputs():
    return [torch.randn(rows, cols), torch.randn(rows, cols), 0.25]


def get_init_inputs():
    return []
