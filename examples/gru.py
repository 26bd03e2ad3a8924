"""Gated recurrent unit over a whole sequence; the result is every hidden state."""

import torch
from torch import nn

batch = 16
length = 256
inputs = 256
hidden = 512


class Model(nn.Module):
    """One layer of GRU from a hidden state of zeros."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.gru = nn.GRU(inputs, hidden, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        states, _ = self.gru(x)
        return states


def get_inputs():
    return [torch.randn(batch, length, inputs)]


def get_init_inputs():
    return [inputs, hidden]
