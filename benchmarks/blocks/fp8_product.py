"""A product of 8-bit floats with bfloat16 results, 8192 x 8192 x 8192, as scaled layers have it."""

import torch
from torch import nn

rows = 8192
depth = 8192
columns = 8192


class Model(nn.Module):
    """A linear layer in 8 bits, with one scale each for input and weight."""

    def forward(
        self, x: torch.Tensor, weight: torch.Tensor, x_scale: torch.Tensor, scale: torch.Tensor
    ) -> torch.Tensor:
        """Return x @ weight.T, scaled; in wider formats where it is asked in these."""
        if x.dtype is not torch.float8_e4m3fn:
            return x @ weight.t() * x_scale * scale
        return torch._scaled_mm(
            x, weight.t(), scale_a=x_scale, scale_b=scale, out_dtype=torch.bfloat16
        )


def get_inputs() -> list[torch.Tensor]:
    """Return input and weight in 8 bits, and their scales."""
    return [
        torch.randn(rows, depth).to(torch.float8_e4m3fn),
        torch.randn(columns, depth).to(torch.float8_e4m3fn),
        torch.rand(()) + 0.5,
        torch.rand(()) + 0.5,
    ]


def get_init_inputs() -> list[object]:
    """Return nothing: the module takes no argument."""
    return []
