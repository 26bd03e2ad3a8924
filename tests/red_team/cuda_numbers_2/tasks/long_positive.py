"""Product of positive matrices, over a long sum."""

import torch
from torch import nn

rows = 1024
inner = 8192
cols = 1024


class Model(nn.Module):
    """Product of positive matrices, over a long sum."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b


def get_inputs():
    return [torch.rand(rows, inner), torch.rand(inner, cols)]


def get_init_inputs():
    return []
