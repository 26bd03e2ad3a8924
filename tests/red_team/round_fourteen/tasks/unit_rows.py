"""Rows of length one, unless they are next to nothing."""

import torch
from torch import nn

rows = 512
width = 128


class Model(nn.Module):
    """Rows of length one, unless they are next to nothing."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.normalize(x, dim=-1)


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return []
