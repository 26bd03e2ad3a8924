"""Rows added where an index says."""

import torch
from torch import nn

count = 16384
nodes = 50000
width = 64


class Model(nn.Module):
    """Rows added where an index says."""

    def __init__(self, nodes: int) -> None:
        super().__init__()
        self.nodes = nodes

    def forward(self, index: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        total = torch.zeros(self.nodes, rows.shape[1], dtype=rows.dtype, device=rows.device)
        return total.index_add(0, index, rows)


def get_inputs():
    return [torch.randint(0, nodes, (count,)), torch.randn(count, width)]


def get_init_inputs():
    return [nodes]
