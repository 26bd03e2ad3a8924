"""What settles row by row, of inputs that stay what they are when a matrix is turned."""

import torch
from torch import nn

n = 2048


class Model(nn.Module):
    """Weighted row sums of what settles under a symmetric matrix."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.register_buffer("share", torch.linspace(0.5, 1.5, n))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.tanh(x)
        for _ in range(7):
            y = torch.tanh(x - 0.5 * y)
        return (y * self.share).sum(-1)


def get_inputs():
    x = torch.randn(n, n)
    return [x + x.T]


def get_init_inputs():
    return [n]
