"""GELU."""

import torch
from torch import nn


class Model(nn.Module):
    """GELU."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.gelu(x)


def get_inputs():
    return [torch.randn(512, 512)]


def get_init_inputs():
    return []
