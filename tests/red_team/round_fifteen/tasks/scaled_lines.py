"""Numbers times powers of two, as block formats have them."""

import torch
from torch import nn

count = 65536


class Model(nn.Module):
    """Numbers times powers of two, as block formats have them."""

    def forward(self, x: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
        return torch.ldexp(x, step)


def get_inputs():
    return [torch.randn(count), torch.randint(0, 9, (count,))]


def get_init_inputs():
    return []
