"""Sum of products of the bytes of two rows."""

import torch
from torch import nn

rows = 512
cols = 1024


class Model(nn.Module):
    """Sum of products of the bytes of two rows."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x.int() * y.int()).sum(-1)


def get_inputs():
    return [
        torch.randint(-128, 128, (rows, cols), dtype=torch.int8),
        torch.randint(-128, 128, (rows, cols), dtype=torch.int8),
    ]


def get_init_inputs():
    return []
