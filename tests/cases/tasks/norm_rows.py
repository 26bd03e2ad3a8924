"""Layer normalisation of rows."""

import torch
from torch import nn

rows = 512
cols = 512


class Model(nn.Module):
    """Layer normalisation of rows."""

    def __init__(self, cols: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(cols)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return [cols]
