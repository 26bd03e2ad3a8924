"""Scores of the shortest beginning that a row repeats."""

import torch
from torch import nn

rows = 96
cols = 32


class Model(nn.Module):
    """Scores of the shortest beginning that a row repeats."""

    def forward(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        count = ids.shape[1]
        again = [(ids[:, p:] == ids[:, :-p]).all(-1) for p in range(1, count)]
        found = torch.stack([*again, torch.ones_like(again[0])], -1).float()
        period = found.argmax(-1) + 1
        kept = torch.arange(count, device=ids.device) < period[:, None]
        return torch.where(kept, scores, 0.0).sum(-1)


def get_inputs():
    return [torch.randint(0, 1000, (rows, cols)), torch.randn(rows, cols)]


def get_init_inputs():
    return []
