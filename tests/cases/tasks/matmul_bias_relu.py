"""Linear layer followed by ReLU."""

import torch
from torch import nn

rows = 256
inner = 256
cols = 256


class Model(nn.Module):
    """Linear layer followed by ReLU."""

    def __init__(self, inner: int, cols: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inner, cols)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x))


def get_inputs():
    return [torch.randn(rows, inner)]


def get_init_inputs():
    return [inner, cols]
