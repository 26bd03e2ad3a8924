"""What is below zero times each column's own slope."""

import torch
from torch import nn

rows = 512
cols = 1024


class Model(nn.Module):
    """What is below zero times each column's own slope."""

    def __init__(self) -> None:
        super().__init__()
        self.slope = nn.PReLU(cols)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.slope(x)


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
