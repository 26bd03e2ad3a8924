"""Means of bags of embeddings."""

import torch
from torch import nn

bags = 512
entries = 1000
width = 64


class Model(nn.Module):
    """Means of bags of embeddings."""

    def __init__(self, entries: int, width: int) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(entries, width, mode="mean")

    def forward(self, ids: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        return self.bag(ids, offsets)


def get_inputs():
    shift = torch.randint(0, 8, (bags,))
    shift[0] = 0
    return [torch.randint(0, entries, (8 * bags,)), torch.arange(bags) * 8 + shift]


def get_init_inputs():
    return [entries, width]
