"""Attention without a mask."""

import torch
from torch import nn

batch = 2
queries = 64
keys = 96
width = 32


class Model(nn.Module):
    """Attention without a mask."""

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        scores = torch.bmm(q, k.transpose(1, 2)) * width**-0.5
        return torch.bmm(torch.softmax(scores, -1), v)


def get_inputs():
    return [
        torch.randn(batch, queries, width),
        torch.randn(batch, keys, width),
        torch.randn(batch, keys, width),
    ]


def get_init_inputs():
    return []
