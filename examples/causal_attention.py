"""Causal self-attention block with projections in and out, as in GPT."""

import math

import torch
from torch import nn

batch = 16
length = 512
width = 512
heads = 8


class Model(nn.Module):
    """Multi-head self-attention with a causal mask, written out as in minGPT."""

    def __init__(self, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)
        self.n_head = heads
        self.register_buffer("mask", torch.tril(torch.ones(length, length)).bool())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        size = width // self.n_head
        q, k, v = (
            part.view(batch, length, self.n_head, size).transpose(1, 2)
            for part in self.c_attn(x).split(width, dim=2)
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(size)
        scores = scores.masked_fill(~self.mask[:length, :length], float("-inf"))
        y = torch.softmax(scores, dim=-1) @ v
        return self.c_proj(y.transpose(1, 2).reshape(batch, length, width))


def get_inputs():
    return [torch.randn(batch, length, width)]


def get_init_inputs():
    return [width, heads, length]
