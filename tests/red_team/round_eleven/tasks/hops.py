"""The end of a chain of places."""

import torch
from torch import nn

rows = 128
cols = 256


class Model(nn.Module):
    """The end of a chain of places."""

    def forward(self, next_of: torch.Tensor) -> torch.Tensor:
        end = next_of
        for _ in range(12):
            end = end.gather(1, end)
        return end


def get_inputs():
    place = torch.arange(cols)
    step = torch.randint(0, cols, (rows, cols))
    return [torch.minimum(place + step, torch.tensor(cols - 1))]


def get_init_inputs():
    return []
