"""The gradient of a norm; zero where the norm is."""

import torch
from torch import nn

rows = 128
cols = 256


class Model(nn.Module):
    """The norm of each row."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.norm(dim=-1)


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
