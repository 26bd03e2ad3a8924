"""The mean of embeddings; the first word is padding."""

import torch
from torch import nn

bags = 64
words = 24


class Model(nn.Module):
    """A bag of words."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.EmbeddingBag(30000, 16, mode="mean", padding_idx=0)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.table(words)


def get_inputs():
    return [torch.randint(0, 30000, (bags, words))]


def get_init_inputs():
    return []
