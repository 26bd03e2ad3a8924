"""Residual and RMS normalisation, float32: 1024 tokens of a language model of width 2048."""

import torch
from torch import nn

rows = 1024
columns = 2048


class Model(nn.Module):
    """RMSNorm(x + residual) with a learned weight."""

    def __init__(self, columns: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(columns))
        self.eps = eps

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        """Return the normalised sum."""
        h = x + residual
        return h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def get_inputs() -> list[torch.Tensor]:
    """Return a layer's output and what it is added to."""
    return [torch.randn(rows, columns), torch.randn(rows, columns)]


def get_init_inputs() -> list[object]:
    """Return the width."""
    return [columns]
