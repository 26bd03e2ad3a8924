"""Rates for a day of each year."""

import torch
from torch import nn

count = 65536


class Model(nn.Module):
    """Rates for a day of each year."""

    def forward(self, rates: torch.Tensor, years: torch.Tensor) -> torch.Tensor:
        is_leap = (years % 4 == 0) & ((years % 100 != 0) | (years % 400 == 0))
        return rates / (365 + is_leap.to(rates.dtype))


def get_inputs():
    return [torch.rand(count) + 0.5, torch.randint(1901, 2100, (count,))]


def get_init_inputs():
    return []
