"""Sums that fade at a learned rate, along the sequence."""

import torch
from torch import nn

batch = 2
length = 512
channels = 256


class Model(nn.Module):
    """Sums that fade at a learned rate, along the sequence."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.rate = nn.Parameter(torch.zeros(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        fade, state, states = torch.sigmoid(self.rate), torch.zeros_like(x[:, 0]), []
        for t in range(x.shape[1]):
            state = fade * state + x[:, t]
            states.append(state)
        return torch.stack(states, dim=1)


def get_inputs():
    return [torch.randn(batch, length, channels)]


def get_init_inputs():
    return [channels]
