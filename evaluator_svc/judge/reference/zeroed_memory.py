"""Tensors that a reference makes without giving them values."""

from collections.abc import Mapping
from typing import Any, Final

import torch

from evaluator_svc.judge.reference.operators import OperatorMode, operator_name

_EMPTY: Final = frozenset({
    "empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided",
})  # fmt: skip


class ZeroedMemory(OperatorMode):
    """While active, new memory holds zeros.

    Two calls under one seed would else differ in what was there before.
    """

    def run(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run the operator, and zero what it gives no values."""
        result = func(*args, **kwargs)
        if operator_name(func) in _EMPTY and isinstance(result, torch.Tensor):
            storage = result.untyped_storage()  # formats of four bits have no zero_
            torch.empty(0, dtype=torch.uint8, device=result.device).set_(storage).zero_()
        return result
