"""Layer normalisation with weight and bias."""

import torch
from torch import nn

rows = 1024
cols = 768


class Model(nn.Module):
    """Layer normalisation with weight and bias."""

    def __init__(self, cols: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(cols)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return [cols]
