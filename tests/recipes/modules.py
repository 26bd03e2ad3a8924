"""Small references that recipes have to cover."""

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional


class _Lambda(nn.Module):
    def __init__(self, call: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.call = call

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.call(x)


class BiasGeluLayerNorm(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.randn(dim))
        self.ln = nn.LayerNorm(dim)
        nn.init.normal_(self.ln.weight)
        nn.init.normal_(self.ln.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.ln(functional.gelu(x + self.bias))


class ResidualRmsNorm(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(dim))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x + 0.5 * x.abs()
        return h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class BiasLeakyRelu(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.randn(dim))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.leaky_relu(x + self.bias, 0.2)


class LinearRelu(nn.Module):
    def __init__(self, depth: int, cols: int) -> None:
        super().__init__()
        self.linear = nn.Linear(depth, cols)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x)) * 0.5


class LinearResidual(nn.Module):
    def __init__(self, depth: int, cols: int) -> None:
        super().__init__()
        self.linear = nn.Linear(depth, cols)

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        return functional.gelu(self.linear(x)) + residual


class ProductWithColumns(nn.Module):
    def __init__(self, depth: int, cols: int) -> None:
        super().__init__()
        self.right = nn.Parameter(torch.randn(depth, cols) / depth**0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x @ self.right)


MATMUL_MODULES: dict[str, Callable[[int, int], nn.Module]] = {
    "linear_relu": LinearRelu,
    "linear_residual": LinearResidual,
    "columns": ProductWithColumns,
}

ROW_MODULES: dict[str, Callable[[int], nn.Module]] = {
    "bias_gelu_layernorm": BiasGeluLayerNorm,
    "residual_rmsnorm": ResidualRmsNorm,
    "softmax": lambda _dim: _Lambda(lambda x: torch.softmax(x * 3, -1)),
    "log_softmax": lambda _dim: _Lambda(lambda x: torch.log_softmax(x, -1)),
    "sum": lambda _dim: _Lambda(lambda x: (x * x).sum(-1)),
    "max": lambda _dim: _Lambda(lambda x: x.amax(-1, keepdim=True)),
    "mean": lambda _dim: _Lambda(lambda x: torch.sigmoid(x).mean(-1)),
    "logsumexp": lambda _dim: _Lambda(lambda x: torch.logsumexp(x, -1)),
    "pointwise": lambda _dim: _Lambda(
        lambda x: functional.silu(x) + torch.tanh(x) * functional.softplus(x).clamp(max=2.0)
    ),
    "mish": lambda _dim: _Lambda(lambda x: functional.mish(functional.leaky_relu(x, 0.1))),
    "gelu_tanh": lambda _dim: _Lambda(lambda x: functional.gelu(x, approximate="tanh")),
    "columns": BiasLeakyRelu,
    "standardise": lambda _dim: _Lambda(
        lambda x: (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + 1e-5).sqrt()
    ),
}
