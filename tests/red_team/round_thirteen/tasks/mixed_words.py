"""Words of 64 bits, mixed."""

import torch
from torch import nn

rows = 256
width = 256


class Model(nn.Module):
    """Words of 64 bits, mixed."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x ^ (x >> 17)) & 0xFFFFFFFF


def get_inputs():
    return [torch.randint(0, 2**40, (rows, width))]


def get_init_inputs():
    return []
