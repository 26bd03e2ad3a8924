"""Counts the floating-point operations of a reference's products."""

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry

from evaluator_svc.judge.reference.operators import OperatorMode, operator_name


class FlopCount(OperatorMode):
    """While active, counts operations by operators.

    Torch's own counts by modules as well, by hooks that a gradient within a module cannot have.
    """

    def __init__(self) -> None:
        super().__init__()
        self.of_operators: Counter[str] = Counter()

    def run(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run the operator, or those that it consists of, and count."""
        with self:  # in inference mode a product arrives as a whole, such as a linear layer
            parts = func.decompose(*args, **kwargs)
        if parts is not NotImplemented:
            return parts
        result = func(*args, **kwargs)
        packet = func._overloadpacket
        if packet in flop_registry:
            if operator_name(func).startswith("_scaled_dot_product"):
                flops = _attention_flops(*args[:3])
            else:
                flops = flop_registry[packet](*args, **kwargs, out_val=result)
            self.of_operators[str(packet)] += flops
        return result


def _attention_flops(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> int:
    """Return the operations of both products; torch 2.11 refuses heads that share keys."""
    scores = math.prod(query.shape[:-1]) * key.shape[-2]
    return 2 * scores * (query.shape[-1] + value.shape[-1])
