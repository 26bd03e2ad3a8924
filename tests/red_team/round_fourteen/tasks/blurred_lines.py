"""Rows smoothed by a normal curve, whose width is given."""

import torch
from torch import nn

rows = 32
places = 512


class Model(nn.Module):
    """Rows smoothed by a normal curve, whose width is given."""

    def forward(self, x: torch.Tensor, width: float) -> torch.Tensor:
        places = torch.arange(x.shape[-1], dtype=x.dtype, device=x.device)
        curve = torch.exp(-0.5 * ((places[:, None] - places[None, :]) / width).square())
        return x @ (curve / curve.sum(0, keepdim=True))


def get_inputs():
    return [torch.randn(rows, places), 2.0]


def get_init_inputs():
    return []
