"""Greatest common divisors."""

import torch
from torch import nn

rows = 128
cols = 256


class Model(nn.Module):
    """Greatest common divisors."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.gcd(a, b)


def get_inputs():
    return [torch.randint(1, 1000, (rows, cols)), torch.randint(1, 1000, (rows, cols))]


def get_init_inputs():
    return []
