"""Whether the sums of a reference's products cancel on ordinary inputs, so that errors show."""

from collections.abc import Mapping
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.reference.cut_operands import PRODUCT_OPERATORS, operands_of
from evaluator_svc.judge.reference.operators import OperatorMode, operator_name
from evaluator_svc.judge.unusual_values.changed_values import has_both_signs


def products_cancel(input_set: InputSet) -> bool:
    """Return whether every product has an operand in which both signs are common; none: False.

    Raises:
        TaskInvalidError: the reference raises.
    """
    signs = _Signs()
    with signs:
        input_set.run()
    return signs.seen == {True}


class _Signs(OperatorMode):
    """While active, looks at the operands of every product."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = set[bool]()

    def run(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run the operator, and look at what it was given where it is a product."""
        name = operator_name(func)
        if name in PRODUCT_OPERATORS:
            operands = tree_leaves(operands_of(name, args))
            self.seen.add(any(_is_operand(v) and has_both_signs(v) for v in operands))
        return func(*args, **kwargs)


def _is_operand(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point() and value.ndim > 1
