"""Convolution, ReLU and max pooling, as at the start of a small image classifier."""

import torch
from torch import nn

batch = 64
inputs = 16
outputs = 32
size = 64


class Model(nn.Module):
    """MaxPool(ReLU(conv(x))), windows of 2 x 2."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3)
        self.pool = nn.MaxPool2d(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.pool(torch.relu(self.conv(x)))


def get_inputs():
    return [torch.randn(batch, inputs, size, size)]


def get_init_inputs():
    return [inputs, outputs]
