"""Sum of the magnitudes of each row of bytes."""

import torch
from torch import nn

rows = 512
cols = 1024


class Model(nn.Module):
    """Sum of the magnitudes of each row of bytes."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.to(torch.int32).abs().sum(-1, dtype=torch.int32)


def get_inputs():
    return [torch.randint(-127, 128, (rows, cols), dtype=torch.int8)]


def get_init_inputs():
    return []
