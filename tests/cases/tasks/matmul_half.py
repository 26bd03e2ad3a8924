"""Product of two matrices in float16."""

import torch
from torch import nn

rows = 256
inner = 512
cols = 256


class Model(nn.Module):
    """Product of two matrices."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b


def get_inputs():
    return [torch.randn(rows, inner), torch.randn(inner, cols)]


def get_init_inputs():
    return []
