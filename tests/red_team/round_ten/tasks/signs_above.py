"""Which elements are above zero."""

import torch
from torch import nn

rows = 512
cols = 1024


class Model(nn.Module):
    """Which elements are above zero."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x > 0


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
