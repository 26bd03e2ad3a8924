"""The nearest shares to each row."""

import torch
from torch import nn

rows = 64
width = 256


class Model(nn.Module):
    """The nearest shares to each row."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        ordered = x.sort(-1, descending=True).values
        count = torch.arange(1, x.shape[-1] + 1, device=x.device, dtype=x.dtype)
        total = ordered.cumsum(-1)
        size = (1 + count * ordered > total).sum(-1, keepdim=True)
        border = (total.gather(-1, size - 1) - 1) / size.to(x.dtype)
        return torch.relu(x - border)


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return []
