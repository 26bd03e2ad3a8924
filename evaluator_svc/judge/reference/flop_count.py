"""Counts the floating-point operations of a reference's products."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from torch.utils.flop_counter import flop_registry

from evaluator_svc.judge.reference.operators import OperatorMode


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
            flops = flop_registry[packet](*args, **kwargs, out_val=result)
            self.of_operators[str(packet)] += flops
        return result
