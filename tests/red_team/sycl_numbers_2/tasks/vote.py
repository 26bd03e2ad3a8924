"""Whether the squashed values of a row are positive on average."""

import torch
from torch import nn

rows = 32
cols = 32768


class Model(nn.Module):
    """Whether the squashed values of a row are positive on average."""

    def __init__(self, cols: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.rand(cols) + 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x * self.gain).mean(-1) > 0.0


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return [cols]
