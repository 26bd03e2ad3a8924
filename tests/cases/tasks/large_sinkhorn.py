"""The same for a device on which a thousand matrices take no time."""

import torch
from torch import nn

batch = 16384


class Model(nn.Module):
    """Twenty rounds of Sinkhorn's scaling of positive matrices."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(20):
            x = x / x.sum(-1, keepdim=True)
            x = x / x.sum(-2, keepdim=True)
        return x


def get_inputs():
    return [torch.rand(batch, 32, 32) + 0.1]


def get_init_inputs():
    return []
