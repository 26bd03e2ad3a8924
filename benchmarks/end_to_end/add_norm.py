"""A residual added and its rows normalised, as in every layer of a transformer."""

import torch
from torch import nn

batch = 8
tokens = 1024
width = 1024


class AddNorm(nn.Module):
    """Layer norm of a sum."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Return the normalised rows of x + y."""
        normalised: torch.Tensor = self.norm(x + y)
        return normalised


Model = AddNorm


def get_inputs() -> list[torch.Tensor]:
    """Return what a layer got and what it made."""
    return [torch.randn(batch, tokens, width), torch.randn(batch, tokens, width)]


def get_init_inputs() -> list[object]:
    """Return the row's length."""
    return [width]
