"""A float32 product with ReLU behind it, 4096 x 4096 x 4096."""

import torch
from torch import nn

size = 4096


class Model(nn.Module):
    """The product."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """Return relu(a @ b)."""
        return torch.relu(a @ b)


def get_inputs() -> list[torch.Tensor]:
    """Return the two operands."""
    return [torch.randn(size, size), torch.randn(size, size)]


def get_init_inputs() -> list[object]:
    """Return nothing: the module takes no argument."""
    return []
