"""Attention of one head over all keys."""

import torch
from torch import nn

batch = 4
count = 64
width = 32
scale = 0.17677669529663687


class Model(nn.Module):
    """Attention of one head over all keys."""

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.softmax(q @ k.transpose(-1, -2) * scale, dim=-1) @ v


def get_inputs():
    q = torch.randn(batch, count, width)
    return [q, torch.randn(batch, count, width), torch.randn(batch, count, width)]


def get_init_inputs():
    return []
