"""Batch normalisation by running statistics, then SiLU."""

import torch
from torch import nn
from torch.nn import functional

batch = 8
channels = 32
length = 128


class Model(nn.Module):
    """Batch normalisation by running statistics, then SiLU."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.silu(
            functional.batch_norm(
                x, self.norm.running_mean, self.norm.running_var, self.norm.weight, self.norm.bias
            )
        )


def get_inputs():
    return [torch.randn(batch, channels, length)]


def get_init_inputs():
    return []
