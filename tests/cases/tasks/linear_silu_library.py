"""Linear layer followed by SiLU; the library's linear may be called."""

import torch
from torch import nn

rows = 256
inner = 256
cols = 256


class Model(nn.Module):
    """Linear layer followed by SiLU; the library's linear may be called."""

    def __init__(self, inner: int, cols: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inner, cols)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.silu(self.linear(x))


def get_inputs():
    return [torch.randn(rows, inner)]


def get_init_inputs():
    return [inner, cols]
