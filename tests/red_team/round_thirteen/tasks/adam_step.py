"""A step of Adam on parameters, with its moments as inputs."""

import torch
from torch import nn

rows = 128
width = 256


class Model(nn.Module):
    """A step of Adam on parameters, with its moments as inputs."""

    def forward(self, p: torch.Tensor, m: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return p - 1e-3 * m / (v.sqrt() + 1e-8)


def get_inputs():
    return [torch.randn(rows, width), torch.randn(rows, width), torch.rand(rows, width)]


def get_init_inputs():
    return []
