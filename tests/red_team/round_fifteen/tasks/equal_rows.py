"""How many rows each row equals, itself included."""

import torch
from torch import nn

rows = 512
width = 48


class Model(nn.Module):
    """How many rows each row equals, itself included."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x[:, None, :] == x[None, :, :]).all(-1).sum(-1)


def get_inputs():
    return [torch.randint(0, 1 << 20, (rows // 2, width))[torch.randint(0, rows // 2, (rows,))]]


def get_init_inputs():
    return []
