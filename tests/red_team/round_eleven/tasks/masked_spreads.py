"""Unbiased variance of what a mask keeps."""

import torch
from torch import nn

rows = 128
cols = 256


class Model(nn.Module):
    """Unbiased variance of what a mask keeps."""

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        kept = torch.where(mask, x, 0.0)
        count = mask.sum(-1)
        mean = kept.sum(-1) / count.clamp(min=1)
        apart = torch.where(mask, x - mean[:, None], 0.0)
        return (apart * apart).sum(-1) / (count - 1).clamp(min=1)


def get_inputs():
    return [torch.randn(rows, cols), torch.rand(rows, cols) < 0.5]


def get_init_inputs():
    return []
