"""What a recurrent layer ends with after a long sequence."""

import torch
from torch import nn

batch = 4
steps = 160


class Model(nn.Module):
    """What a recurrent layer ends with after a long sequence."""

    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(8, 16, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.gru(x)[1][0]


def get_inputs():
    return [torch.randn(batch, steps, 8)]


def get_init_inputs():
    return []
