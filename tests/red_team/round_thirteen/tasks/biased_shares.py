"""A softmax over keys that an added mask of zero and -1e9 keeps."""

import torch
from torch import nn

rows = 128
keys = 96


class Model(nn.Module):
    """A softmax over keys that an added mask of zero and -1e9 keeps."""

    def forward(self, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x + bias, -1)


def get_inputs():
    return [torch.randn(rows, keys), (torch.rand(rows, keys) < 0.3).float() * -1e9]


def get_init_inputs():
    return []
