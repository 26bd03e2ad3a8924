"""All states of a recurrent layer over one long sequence."""

import torch
from torch import nn

batch = 1
steps = 320


class Model(nn.Module):
    """All states of a recurrent layer over one long sequence."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(16, elementwise_affine=False)
        self.gru = nn.GRU(16, 32, batch_first=True, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.gru(self.norm(x))[0]


def get_inputs():
    return [torch.randn(batch, steps, 16)]


def get_init_inputs():
    return []
