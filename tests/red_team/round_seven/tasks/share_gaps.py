"""How far the shares of two lists of weights are apart."""

import torch
from torch import nn

rows = 512
cols = 1024


class Model(nn.Module):
    """How far the shares of two lists of weights are apart."""

    def forward(self, p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
        p = p / p.sum(-1, keepdim=True)
        q = q / q.sum(-1, keepdim=True)
        return (p - q).abs().sum(-1)


def get_inputs():
    return [torch.softmax(torch.randn(rows, cols), -1), torch.softmax(torch.randn(rows, cols), -1)]


def get_init_inputs():
    return []
