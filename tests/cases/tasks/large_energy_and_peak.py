"""Mean square of a projection, and where each row has its largest element."""

import torch
from torch import nn

rows = 4096
inner = 1024
cols = 1024


class Model(nn.Module):
    """Mean square of a projection, and where each row has its largest element."""

    def __init__(self, inner: int, cols: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inner, cols) / inner**0.5)

    def forward(self, a: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return (a @ self.weight).square().mean(), a.argmax(-1)


def get_inputs():
    return [torch.randn(rows, inner)]


def get_init_inputs():
    return [inner, cols]
