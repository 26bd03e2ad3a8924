"""Interest upon interest: sums that grow for some whole years."""

import torch
from torch import nn

count = 65536


class Model(nn.Module):
    """Interest upon interest: sums that grow for some whole years."""

    def forward(self, x: torch.Tensor, years: torch.Tensor) -> torch.Tensor:
        return x * torch.exp(years * 0.125)


def get_inputs():
    return [torch.rand(count), torch.randint(0, 31, (count,))]


def get_init_inputs():
    return []
