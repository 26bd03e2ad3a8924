"""A softmax, told to be right by a check."""

import torch
from torch import nn

rows = 256
cols = 512


class Model(nn.Module):
    """A softmax over rows."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, -1)


def are_shares(inputs, expected, actual):
    if not bool(((actual[0].double().sum(-1) - 1).abs() < 1e-4).all()):
        return "a row does not sum to one"
    return bool(torch.allclose(actual[0], expected[0], rtol=1e-4, atol=1e-7)) or "shares differ"


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
