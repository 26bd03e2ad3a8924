"""What growth at a rate adds."""

import torch
from torch import nn

rows = 512
cols = 1024


class Model(nn.Module):
    """What growth at a rate adds."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.expm1(x) * y


def get_inputs():
    return [0.1 * torch.randn(rows, cols), torch.rand(rows, cols)]


def get_init_inputs():
    return []
