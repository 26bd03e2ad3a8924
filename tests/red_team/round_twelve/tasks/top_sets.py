"""The eight largest of each row, in any order."""

import torch
from torch import nn

rows = 256
cols = 1024


class Model(nn.Module):
    """The eight largest of each row."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.topk(8, -1).values


def are_the_largest(inputs, expected, actual):
    return bool(actual[0].sort(-1).values.equal(expected[0].sort(-1).values)) or "others are larger"


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
