"""A layer normalisation."""

import torch
from torch import nn

rows = 128
cols = 768


class Model(nn.Module):
    """A layer normalisation with parameters."""

    def __init__(self, cols: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(cols)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return [cols]
