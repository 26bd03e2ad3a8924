"""A branch that is gated by the tangent of a learned number, which starts at zero."""

import torch
from torch import nn

rows = 1024
cols = 1024


class Model(nn.Module):
    """A branch that is gated by the tangent of a learned number, which starts at zero."""

    def __init__(self, rows: int, cols: int) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.zeros(rows, cols))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.tanh(self.alpha)


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return [rows, cols]
