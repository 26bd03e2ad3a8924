"""Scores of equal rows added up."""

import torch
from torch import nn

rows = 128
cols = 64


class Model(nn.Module):
    """Scores of equal rows added up."""

    def forward(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        same = (ids[:, None, :] == ids[None, :, :]).all(-1)
        return torch.where(same, scores.sin(), 0.0).sum(-1)


def get_inputs():
    return [torch.randint(0, 1 << 20, (rows, cols)), torch.randn(rows)]


def get_init_inputs():
    return []
