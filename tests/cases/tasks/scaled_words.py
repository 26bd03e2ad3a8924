"""Scale of each column, in bfloat16."""

import torch
from torch import nn

rows = 1024
cols = 512


class Model(nn.Module):
    """Scale of each column, in bfloat16."""

    def forward(self, x: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
        return x * gain


def get_inputs():
    return [torch.randn(rows, cols, dtype=torch.bfloat16), torch.randn(cols, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
