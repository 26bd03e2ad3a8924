"""The lesser of two words."""

import torch
from torch import nn

rows = 512
cols = 1024


class Model(nn.Module):
    """The lesser of two words."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.minimum(a, b)


def get_inputs():
    return [torch.randint(-1000, 1000, (rows, cols), dtype=torch.int32) for _ in range(2)]


def get_init_inputs():
    return []
