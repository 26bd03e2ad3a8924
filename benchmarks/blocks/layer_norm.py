"""Layer norm of rows with weight and bias, float32, 16384 x 8192."""

import torch
from torch import nn

rows = 16384
columns = 8192


class Model(nn.Module):
    """The operator."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return each row normalised."""
        normalised: torch.Tensor = self.norm(x)
        return normalised


def get_inputs() -> list[torch.Tensor]:
    """Return the rows."""
    return [torch.randn(rows, columns)]


def get_init_inputs() -> list[object]:
    """Return the row's length."""
    return [columns]
