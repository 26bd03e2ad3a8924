"""A linear layer of few rows and long sums in bfloat16, 128 x 16384 by 16384 x 4096."""

import torch
from torch import nn

rows = 128
depth = 16384
columns = 4096


class Model(nn.Module):
    """The product."""

    def forward(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """Return x @ weight.T."""
        return nn.functional.linear(x, weight)


def get_inputs() -> list[torch.Tensor]:
    """Return input and weight."""
    return [torch.randn(rows, depth), torch.randn(columns, depth)]


def get_init_inputs() -> list[object]:
    """Return nothing: the module takes no argument."""
    return []
