"""Points on a screen, as distance and angle."""

import torch
from torch import nn

n = 1048576


class Model(nn.Module):
    """Points on a screen, as distance and angle."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.stack([torch.hypot(x, y), torch.atan2(y, x)], dim=-1)


def get_inputs():
    return [100.0 * torch.randn(n), 100.0 * torch.randn(n)]


def get_init_inputs():
    return []
