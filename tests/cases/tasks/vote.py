"""Whether the squashed projections of a row are positive on average."""

import torch
from torch import nn

rows = 32
cols = 131072


class Model(nn.Module):
    """Whether the squashed projections of a row are positive on average."""

    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.rand(16) + 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x[..., None] * self.gain).mean((-1, -2)) > 0.0


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
