"""Softmax of rows, float32, 16384 x 8192."""

import torch
from torch import nn

rows = 16384
columns = 8192


class Model(nn.Module):
    """The operator."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the softmax of each row."""
        return torch.softmax(x, dim=-1)


def get_inputs() -> list[torch.Tensor]:
    """Return the rows."""
    return [torch.randn(rows, columns)]


def get_init_inputs() -> list[object]:
    """Return nothing: the module takes no argument."""
    return []
