"""A float16 product, 4096 x 4096 x 4096, for a candidate that any GPU from sm_80 on can run."""

import torch
from torch import nn

rows = 4096
depth = 4096
columns = 4096


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
