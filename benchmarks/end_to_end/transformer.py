"""A small transformer encoder: four layers of width 1024, 8 sequences of 1024 tokens, float32."""

import torch
from torch import nn

from benchmarks.end_to_end.add_norm import AddNorm
from benchmarks.end_to_end.gelu_linear import GeluLinear

WIDTH = 1024
HEADS = 16
LAYERS = 4


class Layer(nn.Module):
    """Attention and MLP, each added and normalised."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.mixed = nn.Linear(WIDTH, WIDTH)
        self.up = GeluLinear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)
        self.norm_attention = AddNorm(WIDTH)
        self.norm_mlp = AddNorm(WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the tokens (batch, tokens, WIDTH) one layer on."""
        batch, tokens, _ = x.shape
        heads = self.qkv(x).view(batch, tokens, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        q, k, v = heads.unbind()
        attended = nn.functional.scaled_dot_product_attention(q, k, v)
        joined = attended.transpose(1, 2).reshape(batch, tokens, WIDTH)
        x = self.norm_attention(x, self.mixed(joined))
        normalised: torch.Tensor = self.norm_mlp(x, self.down(self.up(x)))
        return normalised


class Transformer(nn.Module):
    """The layers."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(*(Layer() for _ in range(LAYERS)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the encoded tokens."""
        encoded: torch.Tensor = self.layers(x)
        return encoded


def get_inputs() -> list[torch.Tensor]:
    """Return embedded tokens."""
    return [torch.randn(8, 1024, WIDTH)]
