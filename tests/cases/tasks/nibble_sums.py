"""Sum of the eight numbers of four bits in each word, times a gain."""

import torch
from torch import nn

rows = 256
cols = 512


class Model(nn.Module):
    """Sum of the eight numbers of four bits in each word, times a gain."""

    def forward(self, packed: torch.Tensor) -> torch.Tensor:
        shifts = torch.arange(0, 32, 4, device=packed.device, dtype=torch.int32)
        return ((packed[..., None] >> shifts) & 15).sum(-1, dtype=torch.int32)


def get_inputs():
    return [torch.randint(0, 2**31 - 1, (rows, cols), dtype=torch.int32)]


def get_init_inputs():
    return []
