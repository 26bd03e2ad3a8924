"""Mean square of what embedded tokens are projected to: the only floats are parameters."""

import torch
from torch import nn

rows = 1024
inner = 256
cols = 256


class Model(nn.Module):
    """Mean square of what embedded tokens are projected to."""

    def __init__(self, inner: int, cols: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(2048, inner))
        self.weight = nn.Parameter(torch.randn(inner, cols) / inner**0.5)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return (self.table[tokens] @ self.weight).square().mean()


def get_inputs():
    return [torch.randint(0, 2048, (rows,))]


def get_init_inputs():
    return [inner, cols]
