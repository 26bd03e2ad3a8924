"""Attention with a mask of keys."""

import torch
from torch import nn

heads = 64
length = 512
width = 64


class Model(nn.Module):
    """Attention with a mask of keys."""

    def forward(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
        return torch.softmax(scores.masked_fill(~mask[:, None, :], float("-inf")), -1) @ v


def get_inputs():
    return [
        torch.randn(heads, length, width),
        torch.randn(heads, length, width),
        torch.randn(heads, length, width),
        torch.rand(heads, length) < 0.7,
    ]


def get_init_inputs():
    return []
