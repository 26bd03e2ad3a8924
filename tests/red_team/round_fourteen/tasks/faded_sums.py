"""Running sums in which what came before fades, by a rate that is given."""

import torch
from torch import nn

rows = 64
steps = 512


class Model(nn.Module):
    """Running sums in which what came before fades, by a rate that is given."""

    def forward(self, x: torch.Tensor, rate: float) -> torch.Tensor:
        ages = torch.arange(x.shape[-1], device=x.device)
        ages = ages[:, None] - ages[None, :]
        kept = torch.where(ages >= 0, rate ** ages.clamp(min=0).to(x.dtype), 0.0)
        return x @ kept.t()


def get_inputs():
    return [torch.randn(rows, steps), 0.5]


def get_init_inputs():
    return []
