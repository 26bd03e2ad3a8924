"""The same for a device on which a product of 512 columns takes no time."""

import torch
from torch import nn

n = 2048


class Model(nn.Module):
    """A product of two weights, added to the input: most of the work needs no input."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.randn(n, n) / n**0.5)
        self.b = nn.Parameter(torch.randn(n, n) / n**0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x) + self.a @ self.b


def get_inputs():
    return [torch.randn(n, n)]


def get_init_inputs():
    return [n]
