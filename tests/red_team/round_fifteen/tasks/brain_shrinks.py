"""Soft shrinkage, in bfloat16."""

import torch
from torch import nn

count = 65536


class Model(nn.Module):
    """Soft shrinkage, in bfloat16."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.softshrink(x, 0.5)


def get_inputs():
    return [torch.randn(count).bfloat16()]


def get_init_inputs():
    return []
