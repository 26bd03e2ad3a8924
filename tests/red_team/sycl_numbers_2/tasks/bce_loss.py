"""Binary cross entropy of logits, a scalar."""

import torch
from torch import nn

rows = 1024
cols = 1024


class Model(nn.Module):
    """Binary cross entropy of logits, a scalar."""

    def forward(self, logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return nn.functional.binary_cross_entropy_with_logits(logits, target)


def get_inputs():
    return [torch.randn(rows, cols), torch.rand(rows, cols)]


def get_init_inputs():
    return []
