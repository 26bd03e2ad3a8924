"""Places of samples in a recording, from times in microseconds."""

import torch
from torch import nn

count = 65536


class Model(nn.Module):
    """Places of samples in a recording, from times in microseconds."""

    def forward(self, times: torch.Tensor) -> torch.Tensor:
        return torch.div(times * 441, 10000, rounding_mode="floor")


def get_inputs():
    return [torch.randint(0, 1_000_000_000, (count,))]


def get_init_inputs():
    return []
