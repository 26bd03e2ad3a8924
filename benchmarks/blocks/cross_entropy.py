"""Cross entropy of each row's logits with a class, float32, 8192 x 32768."""

import torch
from torch import nn

rows = 8192
columns = 32768


class Model(nn.Module):
    """The operator."""

    def forward(self, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Return the loss of each row."""
        return torch.nn.functional.cross_entropy(x, target, reduction="none")


def get_inputs() -> list[torch.Tensor]:
    """Return logits and classes."""
    return [torch.randn(rows, columns), torch.randint(0, columns, (rows,))]


def get_init_inputs() -> list[object]:
    """Return nothing: the module takes no argument."""
    return []
