"""Overlap of two soft masks, with a small number that keeps it defined."""

import torch
from torch import nn

rows = 128
width = 256


class Model(nn.Module):
    """Overlap of two soft masks, with a small number that keeps it defined."""

    def forward(self, p: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        return (2 * (p * t).sum(-1) + 1e-3) / (p.sum(-1) + t.sum(-1) + 1e-3)


def get_inputs():
    return [torch.rand(rows, width), torch.rand(rows, width)]


def get_init_inputs():
    return []
