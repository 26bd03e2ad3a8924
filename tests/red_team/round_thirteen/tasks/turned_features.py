"""Pairs of features turned by angles that follow from positions."""

import torch
from torch import nn

rows = 256
pairs = 32


class Model(nn.Module):
    """Pairs of features turned by angles that follow from positions."""

    def forward(self, x: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        rate = 10000.0 ** (-torch.arange(pairs, device=x.device, dtype=x.dtype) / pairs)
        angle = position[:, None].to(x.dtype) * rate
        one, two = x[:, :pairs], x[:, pairs:]
        return torch.cat(
            (one * angle.cos() - two * angle.sin(), one * angle.sin() + two * angle.cos()), -1
        )


def get_inputs():
    return [torch.randn(rows, 2 * pairs), torch.randint(0, 4096, (rows,))]


def get_init_inputs():
    return []
