"""Counts the floating-point operations of a reference's products."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from torch.utils.flop_counter import flop_registry

from evaluator_svc.judge.reference.operators import OperatorMode, operator_name

_ATTENTION: Final = "_scaled_dot_product"


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
            if operator_name(func).startswith(_ATTENTION):
                flops = _attention_flops(operator_name(func), args)
            else:
                flops = flop_registry[packet](*args, **kwargs, out_val=result)
            self.of_operators[str(packet)] += flops
        return result


def _attention_flops(name: str, args: Sequence[Any]) -> int:
    """Return the operations of two products, of five in a gradient.

    Torch 2.11 refuses to count where heads share keys.
    """
    is_backward = name.endswith("_backward")
    query, key, value = args[1:4] if is_backward else args[:3]
    scores = math.prod(query.shape[:-1]) * key.shape[-2]
    of_keys, of_values = (3, 2) if is_backward else (1, 1)
    flops: int = 2 * scores * (of_keys * query.shape[-1] + of_values * value.shape[-1])
    return flops
