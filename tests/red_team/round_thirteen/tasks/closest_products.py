"""The largest product of each query with any key."""

import torch
from torch import nn

batch = 4
queries = 64
keys = 96
width = 32


class Model(nn.Module):
    """The largest product of each query with any key."""

    def forward(self, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return torch.bmm(q, k.transpose(1, 2)).amax(-1)


def get_inputs():
    return [torch.randn(batch, queries, width), torch.randn(batch, keys, width)]


def get_init_inputs():
    return []
