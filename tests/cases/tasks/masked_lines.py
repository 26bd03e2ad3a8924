"""Softmax of the scores that a mask keeps."""

import torch
from torch import nn

heads = 8
length = 256


class Model(nn.Module):
    """Softmax of the scores that a mask keeps."""

    def forward(self, scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return torch.softmax(scores.masked_fill(~mask, -torch.inf), -1)


def get_inputs():
    return [torch.randn(heads, length, length), torch.ones(length, length, dtype=torch.bool).tril()]


def get_init_inputs():
    return []
