"""Angles between pairs of rows."""

import torch
from torch import nn

rows = 256
cols = 128


class Model(nn.Module):
    """Angles between pairs of rows."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        cosine = (a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1)).clamp(min=1e-12)
        return torch.acos(cosine.clamp(-1.0, 1.0))


def get_inputs():
    return [torch.randn(rows, cols), torch.randn(rows, cols)]


def get_init_inputs():
    return []
