"""Places of keys in order, equal ones as they were."""

import torch
from torch import nn

rows = 64
width = 128


class Model(nn.Module):
    """Places of keys in order, equal ones as they were."""

    def forward(self, key: torch.Tensor) -> torch.Tensor:
        return torch.sort(key, dim=-1, stable=True).indices


def get_inputs():
    return [torch.randint(0, 16, (rows, width))]


def get_init_inputs():
    return []
