"""A bfloat16 product, 8192 x 8192 x 8192."""

import torch
from torch import nn

rows = 8192
depth = 8192
columns = 8192


class Model(nn.Module):
    """The product."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Return a @ b."""
        return a @ b


def get_inputs() -> list[torch.Tensor]:
    """Return the two operands."""
    return [torch.randn(rows, depth), torch.randn(depth, columns)]


def get_init_inputs() -> list[object]:
    """Return nothing: the module takes no argument."""
    return []
