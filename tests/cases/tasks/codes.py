"""A costly function of whole numbers."""

import torch
from torch import nn

rows = 128
cols = 1024


class Model(nn.Module):
    """A contraction, applied often."""

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        f = codes.float() * (1.0 / 65536.0)
        y = f
        for _ in range(64):
            y = torch.cos(0.5 * y + f)
        return y


def get_inputs():
    return [torch.randint(0, 200000, (rows, cols), dtype=torch.int32)]


def get_init_inputs():
    return []
