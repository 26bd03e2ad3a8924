"""The gradient of an embedding; padding has none."""

import torch
from torch import nn

batch = 16
length = 64


class Model(nn.Module):
    """Looks tokens up."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(30000, 16, padding_idx=0)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.table(tokens)


def get_inputs():
    return [torch.randint(0, 30000, (batch, length))]


def get_init_inputs():
    return []
