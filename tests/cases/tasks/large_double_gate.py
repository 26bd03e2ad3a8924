"""Mean of a logistic function, in double precision."""

import torch
from torch import nn

rows = 8192
cols = 2048


class Model(nn.Module):
    """Mean of a logistic function, in double precision."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(x).mean()


def get_inputs():
    return [torch.randn(rows, cols, dtype=torch.float64)]


def get_init_inputs():
    return []
