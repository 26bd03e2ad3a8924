"""Products of rows of bytes, added up exactly."""

import torch
from torch import nn

rows = 128
width = 2048


class Model(nn.Module):
    """Products of rows of bytes, added up exactly."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return (a.int() * b.int()).sum(-1)


def get_inputs():
    return [
        torch.randint(-128, 128, (rows, width), dtype=torch.int8),
        torch.randint(-128, 128, (rows, width), dtype=torch.int8),
    ]


def get_init_inputs():
    return []
