"""Cumulative sums along rows, float32, 8192 x 16384."""

import torch
from torch import nn

rows = 8192
columns = 16384


class Model(nn.Module):
    """The operator."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the running sums of each row."""
        return torch.cumsum(x, dim=-1)


def get_inputs() -> list[torch.Tensor]:
    """Return the rows."""
    return [torch.randn(rows, columns)]


def get_init_inputs() -> list[object]:
    """Return nothing: the module takes no argument."""
    return []
