"""A mean that gates carry on."""

import torch
from torch import nn

batch = 4
steps = 192
width = 16


class Model(nn.Module):
    """A mean that gates carry on."""

    def forward(self, x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
        keep = torch.sigmoid(gate)
        state, states = torch.zeros_like(x[:, 0]), []
        for step in range(x.shape[1]):
            state = keep[:, step] * state + (1 - keep[:, step]) * x[:, step]
            states.append(state)
        return torch.stack(states, 1)


def get_inputs():
    return [torch.randn(batch, steps, width), torch.randn(batch, steps, width)]


def get_init_inputs():
    return []
