"""A linear layer with GELU behind it, the first half of a transformer's MLP."""

import torch
from torch import nn

batch = 8
tokens = 1024
inputs = 1024
outputs = 4096


class GeluLinear(nn.Module):
    """GELU of a linear layer."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return gelu(x @ weight.T + bias)."""
        return nn.functional.gelu(self.linear(x))


Model = GeluLinear


def get_inputs() -> list[torch.Tensor]:
    """Return the tokens."""
    return [torch.randn(batch, tokens, inputs)]


def get_init_inputs() -> list[object]:
    """Return the widths."""
    return [inputs, outputs]
