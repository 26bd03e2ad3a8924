"""How much of a word's beginning stands anywhere in each row."""

import torch
from torch import nn

rows = 128
length = 512
letters = 64
word = 24


class Model(nn.Module):
    """How much of a word's beginning stands anywhere in each row."""

    def forward(self, text: torch.Tensor, word: torch.Tensor) -> torch.Tensor:
        windows = text.unfold(1, word.shape[1], 1)
        return (windows == word[:, None]).long().cumprod(-1).sum(-1).amax(-1)


def get_inputs():
    return [torch.randint(0, letters, (rows, length)), torch.randint(0, letters, (rows, word))]


def get_init_inputs():
    return []
