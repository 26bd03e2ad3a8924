"""Products whose operands have fewer bits, as on matrix units: what that costs in accuracy."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
from torch.utils._pytree import tree_map

from evaluator_svc.judge.reference.operators import OperatorMode, operator_name

TF32_LOST_BITS: Final = 13
"""Of the 23 bits of a float32's mantissa those that TF32 does not have."""

SPLIT_LOST_BITS: Final = 7
"""Those that a high and a low part in bfloat16 do not have, each rounded to the nearest. Cut, this
many cost a little more than three products of such parts do: 5.3e-5 against 3.8e-5 in attention,
1.8e-5 against 1.6e-5 in a product of 1024 terms."""

CUT_SAFETY: Final = 2.0
"""Multiple of what cut operands cost, which hardly depends on the algorithm: what is measured is
the least exact way."""

TF32_CEILING: Final = 5e-2
"""Largest tolerance for the sake of TF32: as for float16, which has as many bits of mantissa."""

PRODUCT_OPERATORS: Final = frozenset(
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
        "_scaled_dot_product_flash_attention_for_cpu",
        "_scaled_dot_product_efficient_attention",
        "_scaled_dot_product_cudnn_attention",
        "_scaled_dot_product_attention_math",
    }
)
"""Operators whose operands a GPU's libraries round where TF32 is allowed."""

_ADDING: Final = frozenset({"addmm", "baddbmm", "addbmm"})
_ATTENTION: Final = "_scaled_dot_product"


def operands_of(name: str, args: Sequence[Any]) -> Sequence[Any]:
    """Return what a product multiplies: neither what is added to it nor a mask."""
    return args[_operand_places(name)]


def _operand_places(name: str) -> slice:
    if name in _ADDING:
        return slice(1, 3)
    return slice(3) if name.startswith(_ATTENTION) else slice(None)


class CutOperands(OperatorMode):
    """While active, cuts the float32 operands of every product, on any device.

    Cut, not rounded: matrix units drop the bits of a register that nobody rounded, which is the
    least exact that a candidate may do. What is added to a product, such as a bias, stays as it is.

    Args:
        lost_bits: How many of the mantissa's last bits become zero.
    """

    def __init__(self, lost_bits: int) -> None:
        super().__init__()
        self._lost = (1 << lost_bits) - 1
        self.has_cut = False
        """Whether there was any product."""

    def run(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run the operator on cut operands where it is a product."""
        name = operator_name(func)
        if name in PRODUCT_OPERATORS:
            self.has_cut = True
            first, end, _ = _operand_places(name).indices(len(args))
            args = (*args[:first], *tree_map(self._cut, args[first:end]), *args[end:])
        return func(*args, **kwargs)

    def _cut(self, value: Any) -> Any:
        is_operand = isinstance(value, torch.Tensor) and value.dtype is torch.float32
        if not is_operand or value.ndim < 2:
            return value
        bits = value.contiguous().view(torch.int32)
        return bits.bitwise_and(~self._lost).view(torch.float32)
