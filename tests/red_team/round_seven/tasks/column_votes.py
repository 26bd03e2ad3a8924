"""How many of each row's scores are above its mean."""

import torch
from torch import nn

rows = 1024
cols = 512


class Model(nn.Module):
    """How many of each row's scores are above its mean."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x > x.mean(-1, keepdim=True)).sum(-1)


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
