"""Mean energy of waves, and where each row has its largest element."""

import torch
from torch import nn

rows = 1024
cols = 1024


class Model(nn.Module):
    """Mean energy of waves, and where each row has its largest element."""

    def __init__(self, cols: int) -> None:
        super().__init__()

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.sin(6.0 * x).square().mean(), x.argmax(-1)


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return [cols]
