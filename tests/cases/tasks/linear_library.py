"""Linear layer that the library could do alone: what passes must have done some of it itself."""

import torch
from torch import nn

rows = 256
inner = 256
cols = 256


class Model(nn.Module):
    """x @ weight.T + bias."""

    def __init__(self, inner: int, cols: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inner, cols)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


def get_inputs():
    return [torch.randn(rows, inner)]


def get_init_inputs():
    return [inner, cols]
