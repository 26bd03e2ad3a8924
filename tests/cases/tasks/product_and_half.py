"""A product in float32, and a copy in float16 for the cache."""

import torch
from torch import nn

rows = 2048
inner = 1024
cols = 2048


class Model(nn.Module):
    """A product in float32, and a copy in float16 for the cache."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = a @ b
        return y, y.half()


def get_inputs():
    return [torch.randn(rows, inner), torch.randn(inner, cols)]


def get_init_inputs():
    return []
