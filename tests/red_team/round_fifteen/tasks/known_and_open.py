"""Readings that are known, beside what is above zero."""

import torch
from torch import nn

rows = 256
width = 256


class Model(nn.Module):
    """Readings that are known, beside what is above zero."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.where(torch.isnan(x), 0.0, x) + torch.where(y > 0, y, 0.0)


def get_inputs():
    return [torch.randn(rows, width), torch.randn(rows, width)]


def get_init_inputs():
    return []
