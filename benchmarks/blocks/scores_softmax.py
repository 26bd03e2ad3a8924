"""Softmax of attention scores, float32: four heads of 1024 tokens."""

import torch
from torch import nn

rows = 4096
columns = 1024


class Model(nn.Module):
    """The operator."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the softmax of each row."""
        return torch.softmax(x, dim=-1)


def get_inputs() -> list[torch.Tensor]:
    """Return the scores."""
    return [torch.randn(rows, columns)]


def get_init_inputs() -> list[object]:
    """Return nothing: the module takes no argument."""
    return []
