"""Binary cross-entropy of probabilities, for each row."""

import torch
from torch import nn
from torch.nn import functional

rows = 128
width = 256


class Model(nn.Module):
    """Binary cross-entropy of probabilities, for each row."""

    def forward(self, p: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        return functional.binary_cross_entropy(p, t, reduction="none").mean(-1)


def get_inputs():
    return [torch.rand(rows, width), torch.randint(0, 2, (rows, width)).float()]


def get_init_inputs():
    return []
