"""GELU, in float32 for the next step and in float16 for the cache."""

import torch
from torch import nn

rows = 1024
cols = 1024


class Model(nn.Module):
    """GELU, in float32 for the next step and in float16 for the cache."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = nn.functional.gelu(x)
        return y, y.half()


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
