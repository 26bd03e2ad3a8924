"""The gradient of a product."""

import torch
from torch import nn

rows = 512
cols = 16


class Model(nn.Module):
    """The product of each row."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.prod(-1)


def get_inputs():
    return [torch.rand(rows, cols) + 0.5]


def get_init_inputs():
    return []
