"""Attention without a softmax: features are positive, and a small number keeps it defined."""

import torch
from torch import nn
from torch.nn import functional

batch = 2
queries = 64
keys = 64
width = 32


class Model(nn.Module):
    """Attention without a softmax: features are positive, and a small number keeps it defined."""

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        one, two = functional.elu(q) + 1, functional.elu(k) + 1
        table = torch.bmm(two.transpose(1, 2), v)
        total = torch.bmm(one, two.sum(1)[:, :, None])
        return torch.bmm(one, table) / (total + 1e-6)


def get_inputs():
    return [
        torch.randn(batch, queries, width),
        torch.randn(batch, keys, width),
        torch.randn(batch, keys, width),
    ]


def get_init_inputs():
    return []
