"""The entropy of two outcomes, of which one has the given share."""

import torch
from torch import nn

rows = 128
width = 256


class Model(nn.Module):
    """The entropy of two outcomes, of which one has the given share."""

    def forward(self, p: torch.Tensor) -> torch.Tensor:
        return -(torch.xlogy(p, p) + torch.xlogy(1 - p, 1 - p))


def get_inputs():
    return [torch.rand(rows, width)]


def get_init_inputs():
    return []
