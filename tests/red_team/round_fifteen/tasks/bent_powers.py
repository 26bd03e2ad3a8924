"""Powers that are a logarithm at zero, as statistics have them."""

import torch
from torch import nn

count = 65536


class Model(nn.Module):
    """Powers that are a logarithm at zero, as statistics have them."""

    def forward(self, x: torch.Tensor, power: float) -> torch.Tensor:
        if power == 0:
            return torch.log(x)
        return (x**power - 1) / power


def get_inputs():
    return [torch.rand(count) + 0.5, 0.5]


def get_init_inputs():
    return []
