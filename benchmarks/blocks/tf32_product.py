"""A linear layer in float32 that may round its operands to TF32, 4096 x 4096 x 4096."""

import torch
from torch import nn

rows = 4096
depth = 4096
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
