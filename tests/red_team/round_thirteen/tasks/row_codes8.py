"""Codes of eight bits for rows, with a scale of their own."""

import torch
from torch import nn

rows = 128
width = 256


class Model(nn.Module):
    """Codes of eight bits for rows, with a scale of their own."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = x.abs().amax(-1, keepdim=True).clamp(min=1e-5) / 127
        return torch.round(x / scale).clamp(-127, 127)


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return []
