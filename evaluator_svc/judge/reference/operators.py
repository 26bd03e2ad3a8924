"""ATen operators as torch runs them: names, arguments, whether they round, a log of what ran.

What a reference's exported graph says of its operators is in `judge/graph`.
"""

import abc
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_any, tree_leaves

_MOVES: Final = frozenset({
    "cat", "clone", "constant_pad_nd", "embedding", "flip", "gather", "index", "index_select",
    "repeat", "roll", "stack",
})  # fmt: skip
"""Operators that make a new tensor of values that were there before."""

_AXES: Final = frozenset({"axis", "dim", "dims"})
"""Argument names of operators that work along an axis, such as sums and softmax."""
MATRIX_PRODUCTS: Final = ("mm", "mv", "dot", "conv")
"""Parts of the names of matrix products and convolutions. The operators of an exported graph,
before torch takes them apart, are in `messages/products.py`."""
_SUMMING: Final = (*MATRIX_PRODUCTS, "avg_pool")
"""Parts of the names of operators that add elements up without an argument for the axis."""
_SAME_PLACES: Final = frozenset({"_to_copy", "alias", "detach"})
"""Operators that compute nothing and leave each element where it is. A view of another shape may
bring two elements of one input together: `x[:, None] - x`."""


def operator_name(func: Any) -> str:
    """Return the name of an `OpOverload` without name space and overload: "add", "index_copy_"."""
    name: str = func._schema.name
    return name.partition("::")[2]


def given_arguments(
    func: Any, args: Sequence[Any], kwargs: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return what an `OpOverload` was called with by the names of its schema, defaults included."""
    arguments = func._schema.arguments
    names = [argument.name for argument in arguments]
    given = {argument.name: argument.default_value for argument in arguments}
    return given | dict(zip(names, args, strict=False)) | dict(kwargs or {})


def written_arguments(func: Any, given: Mapping[str, Any]) -> list[Any]:
    """Return those of the arguments of an `OpOverload`, as `given_arguments`, that it writes to."""
    return [
        given[argument.name]
        for argument in func._schema.arguments
        if argument.alias_info is not None and argument.alias_info.is_write
    ]


class OperatorMode(TorchDispatchMode, abc.ABC):
    """While active, sees every operator that runs, and may give another result."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()  # type: ignore[no-untyped-call]  # torch's own base

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's own base

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing compiles under such a mode, and what keeps the compiler out would import it."""
        return False

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """As torch calls it."""
        del types
        return self.run(func, args, kwargs or {})

    @abc.abstractmethod
    def run(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run an operator and return its result."""


class OperatorLog(OperatorMode):
    """While active, notes what operators run, and the formats that they round their results to."""

    def __init__(self) -> None:
        super().__init__()
        self.dtypes: set[torch.dtype] = set()
        self.operators: Counter[str] = Counter()
        """How often each ran, by names without name space and overload."""
        self.combinations: Counter[str] = Counter()
        """The same of those whose results are each made of many elements: products, sums."""
        self.is_across = False
        """Whether one of these went along the first axis of a tensor of several."""
        self.is_pointwise = True
        """Whether each element of a result is made of one element of each operand at most."""

    def run(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run the operator and look at what it made anew."""
        result = func(*args, **kwargs)
        name = operator_name(func)
        self.operators[name] += 1
        self.is_pointwise &= torch.Tag.pointwise in func.tags or name in _SAME_PLACES
        if rounds(func, args):
            self.combinations[name] += _combines(func, name)
            self.is_across |= _goes_across(given_arguments(func, args, kwargs), name)
            self.dtypes |= {leaf.dtype for leaf in tree_leaves(result) if _is_float(leaf)}
        return result


def _combines(func: Any, name: str) -> bool:
    """Return whether elements of a result are made of many: along an axis, or by their sum."""
    arguments = {argument.name for argument in func._schema.arguments}
    return not _AXES.isdisjoint(arguments) or any(part in name for part in _SUMMING)


def _goes_across(given: Mapping[str, Any], name: str) -> bool:
    """Return whether an operator works along the first axis of a tensor of several."""
    if "batch_norm" in name:
        return bool(given.get("training", given.get("train")))
    tensor = given.get("self", given.get("input"))
    if not isinstance(tensor, torch.Tensor) or tensor.ndim < 2:
        return False
    axes = [axis for argument in _AXES for axis in _listed(given.get(argument))]
    return any(axis % tensor.ndim == 0 for axis in axes)


def _listed(value: Any) -> list[int]:
    return [v for v in (value if isinstance(value, list | tuple) else [value]) if type(v) is int]


def rounds(func: Any, args: Any) -> bool:
    """Return whether an operator computes new floating-point values from others."""
    schema = func._schema
    makes_new = not schema.is_mutable and all(r.alias_info is None for r in schema.returns)
    return makes_new and operator_name(func) not in _MOVES and tree_any(_is_float, args)


def _is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()
