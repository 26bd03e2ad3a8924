"""A state that decays by steps which inputs choose."""

import torch
from torch import nn
from torch.nn import functional

batch = 4
steps = 192
width = 16


class Model(nn.Module):
    """A state that decays by steps which inputs choose."""

    def forward(self, x: torch.Tensor, delta: torch.Tensor) -> torch.Tensor:
        size = functional.softplus(delta)
        decay = torch.exp(-size)
        state, states = torch.zeros_like(x[:, 0]), []
        for step in range(x.shape[1]):
            state = decay[:, step] * state + size[:, step] * x[:, step]
            states.append(state)
        return torch.stack(states, 1)


def get_inputs():
    return [torch.randn(batch, steps, width), torch.randn(batch, steps, width)]


def get_init_inputs():
    return []
