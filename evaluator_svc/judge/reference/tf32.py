"""TF32: switched on for the reference of tasks that allow it, and what it costs in accuracy.

TF32 keeps 10 of a float32's 23 bits of mantissa in the operands of a product, and adds up in
float32.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import torch
from torch.utils._pytree import tree_map

from evaluator_svc.judge.reference.operators import OperatorMode, operator_name

_LOST_BITS: Final = 0x1FFF
"""The 13 bits of a float32's mantissa that TF32 does not have."""

_CUT_OPERATORS: Final = frozenset(
    {
        "mm",
        "bmm",
        "addmm",
        "baddbmm",
        "addbmm",
        "linear",
        "convolution",
        "_convolution",
        "cudnn_convolution",
        "_cudnn_rnn",
        "_scaled_dot_product_flash_attention",
        "_scaled_dot_product_efficient_attention",
        "_scaled_dot_product_cudnn_attention",
        "_scaled_dot_product_attention_math",
    }
)
"""Operators whose operands a GPU's libraries round where TF32 is allowed."""


@contextmanager
def tf32_allowed(device: torch.device, *, allowed: bool) -> Iterator[None]:
    """While active, PyTorch's products and convolutions on `device` may use TF32, or may not.

    On the CPU nothing is touched: there the same switches choose among other kernels.
    """
    if device.type != "cuda":
        yield
        return
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = matmul.allow_tf32, cudnn.allow_tf32
    matmul.allow_tf32 = cudnn.allow_tf32 = allowed
    try:
        yield
    finally:
        matmul.allow_tf32, cudnn.allow_tf32 = before


class Tf32Operands(OperatorMode):
    """While active, cuts the float32 operands of every product to TF32, on any device.

    Cut, not rounded: matrix units drop the bits of a register that nobody rounded, which is the
    least exact that a candidate may do. Vectors, such as a bias, are added in float32.
    """

    def run(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run the operator on cut operands where it is a product."""
        if operator_name(func) in _CUT_OPERATORS:
            args = tree_map(_cut, args)
        return func(*args, **kwargs)


def _cut(value: Any) -> Any:
    if not isinstance(value, torch.Tensor) or value.dtype is not torch.float32 or value.ndim < 2:
        return value
    return value.contiguous().view(torch.int32).bitwise_and(~_LOST_BITS).view(torch.float32)
