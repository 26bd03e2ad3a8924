"""A linear layer on a batch of tokens."""

import torch
from torch import nn

batch = 8
tokens = 1024
inputs = 1024
outputs = 4096


class Model(nn.Linear):
    """The layer of the library."""


def get_inputs() -> list[torch.Tensor]:
    """Return the tokens."""
    return [torch.randn(batch, tokens, inputs)]


def get_init_inputs() -> list[object]:
    """Return the widths."""
    return [inputs, outputs]
