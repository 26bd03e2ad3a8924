"""Attention in which a key's own length and what comes later are left out."""

import torch
from torch import nn

batch = 4
tokens = 96
width = 16


class Model(nn.Module):
    """Attention in which a key's own length and what comes later are left out."""

    def forward(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, first: torch.Tensor
    ) -> torch.Tensor:
        place = torch.arange(q.shape[1], device=q.device)
        is_kept = (place[None, :] <= place[:, None]) & (
            place[None, None, :] >= first[:, None, None]
        )
        scores = torch.bmm(q, k.transpose(1, 2)) * width**-0.5
        return torch.bmm(torch.softmax(scores.masked_fill(~is_kept, -1e9), -1), v)


def get_inputs():
    return [
        torch.randn(batch, tokens, width),
        torch.randn(batch, tokens, width),
        torch.randn(batch, tokens, width),
        torch.zeros(batch, dtype=torch.int64).random_(0, 2),
    ]


def get_init_inputs():
    return []
