"""Whether integers of a reference become larger than their type holds, so that bits are lost."""

from collections.abc import Mapping
from typing import Any, Final

import torch
from torch.utils._pytree import tree_leaves, tree_map

from evaluator_svc.judge.reference.operators import OperatorMode, operator_name

_EXACT: Final = frozenset({"clamp", "floor_divide", "fmod", "maximum", "minimum", "remainder"})
"""Operators whose results are no larger than what they are given."""
_SHIFTS: Final = frozenset({"__lshift", "bitwise_left_shift"})
"""Operators, less what ends a name, that doubles do not have and that drop bits."""
_NEVER_NEGATIVE: Final = frozenset({"gcd", "lcm"})
"""Operators that doubles do not have either: where a result is below zero its type ended."""
_ERROR: Final = 2.0**-32
"""Of a result in doubles, beside itself. An overflow is off by as much as the type holds."""


class IntegerOverflows(OperatorMode):
    """While active, computes results of integers in doubles as well and compares."""

    def __init__(self) -> None:
        super().__init__()
        self.found = False
        """Whether a result was another, or was shifted."""

    def run(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run the operator, then compare what it made of integers."""
        # What is changed in place is there no more afterwards.
        wide_args, wide_named = tree_map(_widened, args), tree_map(_widened, dict(kwargs))
        result = func(*args, **kwargs)
        whole = [leaf for leaf in tree_leaves(result) if _is_integer(leaf)]
        if whole and any(map(_is_integer, tree_leaves((args, kwargs)))):
            self.found |= self._differs(func, whole, wide_args, wide_named)
        return result

    def _differs(self, func: Any, whole: list[torch.Tensor], args: Any, named: Any) -> bool:
        name = operator_name(func).rstrip("_")
        schema = func._schema
        is_view = any(
            r.alias_info is not None and not r.alias_info.is_write for r in schema.returns
        )
        if is_view or name in _EXACT:
            return False
        if name in _SHIFTS:
            return True
        if name in _NEVER_NEGATIVE:
            return any(bool((one < 0).any()) for one in whole)
        if name == "_to_copy":
            wide = [args[0]]
        else:
            named.pop("dtype", None)
            try:
                wide = [leaf for leaf in tree_leaves(func(*args, **named)) if _is_wide(leaf)]
            except (RuntimeError, TypeError):
                return False  # of bits, places or the like: there is nothing to overflow
        if len(wide) != len(whole):
            return False
        return any(_is_off(one, other) for one, other in zip(whole, wide, strict=True))


def _is_off(whole: torch.Tensor, wide: torch.Tensor) -> bool:
    if whole.shape != wide.shape:
        return False
    error = (whole.double() - wide).abs_()
    return bool((error > 1.0 + _ERROR * wide.abs()).any())


def _widened(value: Any) -> Any:
    return value.double() if _is_integer(value) else value


def _is_integer(value: Any) -> bool:
    return (
        isinstance(value, torch.Tensor)
        and not value.is_floating_point()
        and not value.is_complex()
        and value.dtype is not torch.bool
    )


def _is_wide(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype is torch.float64
