"""Angles between pairs of points, as seen from the origin."""

import torch
from torch import nn

count = 4096


class Model(nn.Module):
    """Angles between pairs of points, as seen from the origin."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        cosines = nn.functional.cosine_similarity(x, y, dim=-1)
        return cosines.clamp(-1.0, 1.0).acos()


def get_inputs():
    return [torch.randn(count, 3), torch.randn(count, 3)]


def get_init_inputs():
    return []
