"""RMS normalisation with a weight, in bfloat16."""

import torch
from torch import nn

rows = 1024
cols = 1024


class Model(nn.Module):
    """RMS normalisation with a weight, in bfloat16."""

    def __init__(self, cols: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-5)).to(
            x.dtype
        ) * self.weight


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return [cols]
