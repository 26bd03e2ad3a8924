"""How many steps ago something was measured, in each row."""

import torch
from torch import nn

rows = 64
cols = 1024


class Model(nn.Module):
    """Steps since a measurement, or since the beginning."""

    def forward(self, measured: torch.Tensor) -> torch.Tensor:
        own = torch.arange(measured.shape[1], device=measured.device)
        return own - torch.where(measured, own, 0).cummax(1).values


def get_inputs():
    return [torch.rand(rows, cols) < 0.1]


def get_init_inputs():
    return []
