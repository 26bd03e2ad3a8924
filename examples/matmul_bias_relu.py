"""Linear layer followed by ReLU."""

import torch
from torch import nn

batch = 512
in_features = 1024
out_features = 1024


class Model(nn.Module):
    """ReLU(x @ weight.T + bias)."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x))


def get_inputs():
    return [torch.randn(batch, in_features)]


def get_init_inputs():
    return [in_features, out_features]
