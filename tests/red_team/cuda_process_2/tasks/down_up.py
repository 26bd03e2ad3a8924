"""Two linear layers, one after the other, as an adapter has them."""

import torch
from torch import nn

inner = 128
wide = 16384


class Model(nn.Module):
    """Two linear layers, one after the other, as an adapter has them."""

    def __init__(self, inner: int, wide: int) -> None:
        super().__init__()
        self.down = nn.Linear(inner, wide, bias=False)
        self.up = nn.Linear(wide, inner, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.up(self.down(x))


def get_inputs():
    return [torch.randn(8, inner)]


def get_init_inputs():
    return [inner, wide]
