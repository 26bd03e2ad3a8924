"""Linear layer and GELU, float32: the MLP of the first stage of Swin-T, 56 x 56 places."""

import torch
from torch import nn

rows = 3136
inner = 96
columns = 384


class Model(nn.Module):
    """The layer."""

    def __init__(self, inner: int, columns: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inner, columns)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the activations."""
        return nn.functional.gelu(self.linear(x))


def get_inputs() -> list[torch.Tensor]:
    """Return the features of each place."""
    return [torch.randn(rows, inner)]


def get_init_inputs() -> list[object]:
    """Return the layer's sizes."""
    return [inner, columns]
