"""Rows of a table, chosen by indices."""

import torch
from torch import nn

count = 2048
entries = 1000
width = 256


class Model(nn.Module):
    """Rows of a table, chosen by indices."""

    def __init__(self, entries: int, width: int) -> None:
        super().__init__()
        self.table = nn.Embedding(entries, width)

    def forward(self, index: torch.Tensor) -> torch.Tensor:
        return self.table(index)


def get_inputs():
    return [torch.randint(0, entries, (count,))]


def get_init_inputs():
    return [entries, width]
