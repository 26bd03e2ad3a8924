"""The same at sizes that take time on a GPU."""

import torch
from torch import nn

inner = 1024
cols = 2048


class Model(nn.Module):
    """A linear layer on the spikes of a single row."""

    def __init__(self, inner: int, cols: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inner, cols, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear((x > 1.0).to(x.dtype))


def get_inputs():
    return [torch.randn(1, inner)]


def get_init_inputs():
    return [inner, cols]
