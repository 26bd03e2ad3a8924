"""Scores of words that came before are lowered, once each."""

import torch
from torch import nn

rows = 32
words = 16384
before = 8


class Model(nn.Module):
    """Scores of words that came before are lowered, once each."""

    def forward(self, x: torch.Tensor, word: torch.Tensor) -> torch.Tensor:
        score = x.gather(-1, word)
        return x.scatter(-1, word, torch.where(score < 0, score * 1.5, score / 1.5))


def get_inputs():
    return [torch.randn(rows, words), torch.randint(0, words, (rows, before))]


def get_init_inputs():
    return []
