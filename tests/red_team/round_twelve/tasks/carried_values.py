"""In each column what was measured last: time comes first."""

import torch
from torch import nn

steps = 320
sensors = 96


class Model(nn.Module):
    """Forward fill along the first axis; zero where nothing was measured yet."""

    def forward(self, x: torch.Tensor, measured: torch.Tensor) -> torch.Tensor:
        own = torch.arange(len(x), device=x.device)[:, None]
        last = torch.where(measured, own, -1).cummax(0).values
        found = x.gather(0, last.clamp(min=0))
        return torch.where(last >= 0, found, 0.0)


def get_inputs():
    return [torch.randn(steps, sensors), torch.rand(steps, sensors) < 0.3]


def get_init_inputs():
    return []
