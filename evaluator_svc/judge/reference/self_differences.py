"""Which inputs a reference subtracts from, or compares with, themselves: elements as they are.

Nothing is rounded before such a subtraction, so it is exact for elements that are close to each
other (`unusual_values/close_inputs.py`). A difference from a mean is none: the mean is rounded.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch

from evaluator_svc.judge.reference.operators import OperatorMode, operator_name

SUBTRACTING: Final = frozenset({
    "sub", "rsub", "_cdist_forward", "_euclidean_dist", "_pdist_forward",
})  # fmt: skip
"""Names of operators that subtract."""
COMPARING: Final = frozenset({"eq", "ge", "gt", "le", "lt", "ne"})
"""Names of operators that compare."""


class SelfDifferences(OperatorMode):
    """While active, notes what becomes of inputs and themselves, views of them too.

    Args:
        inputs: Those that the reference runs on.
    """

    def __init__(self, inputs: Sequence[torch.Tensor]) -> None:
        super().__init__()
        self._indices = {_place(tensor): index for index, tensor in enumerate(inputs)}
        self.found = set[int]()
        """Indices of the inputs that are subtracted from themselves."""
        self.compared = set[int]()
        """Indices of the inputs that are compared with themselves."""

    def run(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run the operator and look at what it subtracts."""
        name = operator_name(func)
        if name in SUBTRACTING or name in COMPARING:
            tensors = [value for value in args if isinstance(value, torch.Tensor)]
            places = {_place(tensor) for tensor in tensors}
            if len(places) == 1:
                found = {self._indices[place] for place in places if place in self._indices}
                if name in SUBTRACTING:
                    self.found |= found
                elif len(tensors) > 1:
                    self.compared |= found
        return func(*args, **kwargs)


def _place(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
