import torch
from torch import nn

BATCH = 32
HEADS = 32
LENGTH = 512
WIDTH = 1024


class Model(nn.Module):
    def forward(self, q, k, v):
        return nn.functional.scaled_dot_product_attention(q, k, v)


def get_inputs():
    return [torch.rand(BATCH, HEADS, LENGTH, WIDTH) for _ in range(3)]


def get_init_inputs():
    return []
