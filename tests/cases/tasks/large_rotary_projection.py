"""A projection of rotary embedded rows; positions reach far."""

import torch
from torch import nn

rows = 16384
inner = 512
cols = 1024


class Model(nn.Module):
    """Rotary positions, then a projection."""

    def __init__(self, inner: int, cols: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inner, cols) / inner**0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        half = x.shape[-1] // 2
        steps = torch.arange(half, device=x.device).float() / half
        frequency = 1.0 / 10000.0**steps
        angle = torch.arange(x.shape[0], device=x.device).float()[:, None] * frequency
        cos, sin = angle.cos(), angle.sin()
        left, right = x[:, :half], x[:, half:]
        turned = torch.cat((left * cos - right * sin, right * cos + left * sin), dim=-1)
        return turned @ self.weight


def get_inputs():
    return [torch.randn(rows, inner)]


def get_init_inputs():
    return [inner, cols]
