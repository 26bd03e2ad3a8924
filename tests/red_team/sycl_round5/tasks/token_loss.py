"""Mean loss of tokens, some of which are to be ignored."""

import torch
from torch import nn

tokens = 1024
words = 512


class Model(nn.Module):
    """Mean loss of tokens, some of which are to be ignored."""

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(x, labels, label_smoothing=0.1)


def get_inputs():
    return [torch.randn(tokens, words), torch.randint(0, words, (tokens,))]


def get_init_inputs():
    return []
