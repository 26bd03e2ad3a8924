"""Rows less their mean, in units of their size, each if it is asked for."""

import torch
from torch import nn

rows = 256
width = 256


class Model(nn.Module):
    """Rows less their mean, in units of their size, each if it is asked for."""

    def forward(self, x: torch.Tensor, is_centred: bool, is_scaled: bool) -> torch.Tensor:
        if is_centred:
            x = x - x.mean(-1, keepdim=True)
        if is_scaled:
            x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5)
        return x


def get_inputs():
    return [3 * torch.randn(rows, width) + 1, True, True]


def get_init_inputs():
    return []
