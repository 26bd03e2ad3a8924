"""What a reference takes the whole numbers of its inputs for: places and classes, or numbers.

Found where the reference runs, by its operators: what follows from an input is traced until it
indexes something, is compared with places or with a single class, decides a size, or is a result.
Of a number any size may be asked for (`unusual_values/unusual_integers.py`), of a place none. What
indices of an output look up is in `indexed_values.py`.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakTensorKeyDictionary

from evaluator_svc.judge.reference.followed_inputs import FollowedInputs
from evaluator_svc.judge.reference.operators import (
    OperatorMode,
    given_arguments,
    operator_name,
    written_arguments,
)

_PLACES: Final = frozenset({"index", "indices", "offsets", "repeats"})
"""Names of arguments of operators that say where something is, or how often."""
_COUNTING: Final = (
    "bag", "bincount", "ctc", "local_scalar", "multi_margin", "multilabel", "nested", "one_hot",
    "packed", "segment", "unpool",
)  # fmt: skip
"""Parts of the names of operators that take every number for a place, a class or a size."""
_SHIFTS: Final = ("__lshift__", "__rshift__", "bitwise_left_shift", "bitwise_right_shift")
_POWERS: Final = ("float_power", "pow")
_LEAST_POWER: Final = -2
"""Of floats; a whole number has none below zero."""
_FURTHER_POWERS: Final = 3
"""Powers that are tried beyond the largest one that is drawn."""
_CLASSES: Final = ("eq", "ne")
"""Operators that compare for equality."""
_ORDERS: Final = ("ge", "gt", "le", "lt")
"""Operators that compare by order, also with places."""
_PLACED: Final = ("bucketize", "searchsorted")
"""Operators that say between which of many numbers each one lies."""
_LOSS: Final = "nll_loss"
_SOFT_LOSS: Final = "binary_cross_entropy"
"""Part of the names of losses whose labels may be shares."""
_BOUNDED: Final = (
    *_CLASSES, *_ORDERS, "celu", "clamp", "clamp_max", "clamp_min", "hardshrink", "hardtanh",
    "histc", "huber_loss", "smooth_l1_loss", "softplus", "softshrink", "threshold",
)  # fmt: skip
"""Operators that compare with numbers among their arguments."""
_BOUNDS: Final = (
    "beta", "delta", "lambd", "max", "max_val", "min", "min_val", "other", "threshold",
)  # fmt: skip
"""Names of these arguments."""
_OWN_BOUNDS: Final = {"hardsigmoid": 3.0, "hardswish": 3.0}
"""Operators that compare with a fixed number, and that number."""
_LEAST_BOUND: Final = 1e-6
"""A smaller number only keeps a divisor from zero."""
_SIGNED: Final = ("arctan2", "atan2", "copysign", "signbit")
"""Operators that ask for the sign of zero."""
_WRITING: Final = frozenset({
    "index_copy", "index_copy_", "index_put", "index_put_", "put", "put_", "scatter", "scatter_",
})  # fmt: skip
"""Operators of which the last of several values for one place stays, whichever that is."""
_WRITTEN: Final = ("source", "src", "values")
"""Names of their arguments for the values."""
_COPIES: Final = ("_to_copy", "clone", "flip", "repeat", "roll")
"""Operators that give the numbers of a tensor as they are, beside those that give views."""
_TRUTHS: Final = ("all", "any", "count_nonzero", "logical_not", "nonzero")
"""Operators that compare with zero."""
_LOOK_UPS: Final = {
    "embedding": "weight", "gather": "self", "index": "self", "index_select": "self",
}  # fmt: skip
"""Operators that look something up, and their arguments for what they look it up in."""
_MOST_MARKS: Final = 16
"""Of one comparison with a list."""

_Inputs = frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class InputUses:
    """What inputs are taken for, by their indices."""

    places: frozenset[int]
    """Those that say where something is, how much of it, or of which class."""
    ignored: Mapping[int, int]
    """Which label of a loss's classes, or which place of a table, says that there is none."""
    lengths: Mapping[int, int]
    """How long a row is of which they say how much there is."""
    overwriting: frozenset[int]
    """Places that are written to: what equal ones come to is left open."""
    soft: frozenset[int]
    """Labels of a loss that may be shares of both classes."""
    bounds: frozenset[float]
    """Numbers that the reference compares with or cuts off at, and the same below zero."""
    least_bounds: frozenset[float]
    """Smaller numbers above zero that it cuts off at, to keep a divisor from zero."""
    marks: Mapping[int, frozenset[int]]
    """Whole numbers that an input of integers is compared with, as it is; of those where it is cut
    off or told from others in order, neighbours and numbers beyond."""
    tables: Mapping[int, int]
    """How many places there are of which an input, as it is, names some."""
    steps: Mapping[int, tuple[int, int]]
    """Integers that are powers or shifts, as they are: the least and the largest to be tried."""
    asks_signs: bool
    """Whether the sign of a zero counts."""
    compares_floats: bool
    """Whether floats are compared with those of another tensor."""


def asks_of_floats(operators: Iterable[str]) -> bool:
    """Return whether any of these operators has bounds, soft labels or asks for signs of zero."""
    asking = (*_BOUNDED, *_OWN_BOUNDS, *_PLACED, *_SIGNED)
    return any(name.rstrip("_") in asking or _SOFT_LOSS in name for name in operators)


class InputTrace(OperatorMode):
    """While active, follows inputs through operators.

    Args:
        inputs: Those that the reference runs on.
    """

    def __init__(self, inputs: Sequence[torch.Tensor]) -> None:
        super().__init__()
        self._followed = FollowedInputs(inputs)
        self._own: Any = WeakTensorKeyDictionary()
        """Of which input of integers a tensor holds the numbers as they are."""
        for index, tensor in enumerate(inputs):
            if _is_of_integers(tensor):
                self._own[tensor] = index
        self._marks = dict[int, set[int]]()
        self._tables = dict[int, int]()
        self._places = set[int]()
        self._ignored = dict[int, int]()
        self._lengths = dict[int, int]()
        self._overwriting = set[int]()
        self._soft = set[int]()
        self._bounds = set[float]()
        self._least_bounds = set[float]()
        self._steps = dict[int, tuple[int, int]]()
        self._asks_signs = False
        self._compares_floats = False

    @property
    def uses(self) -> InputUses:
        """What was found so far."""
        return InputUses(
            places=frozenset(self._places),
            ignored=dict(self._ignored),
            lengths=dict(self._lengths),
            overwriting=frozenset(self._overwriting),
            soft=frozenset(self._soft),
            bounds=frozenset(self._bounds),
            least_bounds=frozenset(self._least_bounds),
            marks={index: frozenset(marks) for index, marks in self._marks.items()},
            tables=dict(self._tables),
            steps=dict(self._steps),
            asks_signs=self._asks_signs,
            compares_floats=self._compares_floats,
        )

    def run(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run the operator and note what it takes inputs for."""
        result = func(*args, **kwargs)
        given = given_arguments(func, args, kwargs)
        sources = {name: self._followed.sources_of(value) for name, value in given.items()}
        every = _Inputs().union(*sources.values())
        if every:
            name = operator_name(func)
            self._note_places(name, given, sources, every)
            self._note_numbers(name, given)
            self._note_marks(name, given)
            self._note_tables(name, given)
            self._note_steps(name, given)
            if _SOFT_LOSS in name:
                self._soft |= sources["target"]
            self._asks_signs |= name.rstrip("_") in _SIGNED
            self._compares_floats |= _compares_floats(name, given)
            self._followed.follow(func, given, result, every)
            self._follow_own(func, name, args, result, written_arguments(func, given))
        return result

    def _note_places(
        self,
        name: str,
        given: Mapping[str, Any],
        sources: Mapping[str, _Inputs],
        every: _Inputs,
    ) -> None:
        if any(part in name for part in _COUNTING):
            self._places |= every
        for argument in _PLACES.intersection(sources):
            self._places |= sources[argument]
            if _overwrites(name, given):
                self._overwriting |= sources[argument]
        if name in _SHIFTS:
            self._places |= sources["other"]
        if _LOSS in name:
            self._places |= sources["target"]
            self._ignored |= dict.fromkeys(sources["target"], given["ignore_index"])
        padded, padding = self._own_of(given.get("indices")), given.get("padding_idx")
        if padded is not None and isinstance(padding, int) and padding >= 0:
            self._ignored[padded] = padding
        if name in _CLASSES and not all(sources[side] for side in ("self", "other")):
            self._places |= every
        if name in _ORDERS:
            self._note_order(given, sources, every)

    def _note_numbers(self, name: str, given: Mapping[str, Any]) -> None:
        plain = name.rstrip("_")
        found = [_OWN_BOUNDS[plain]] if plain in _OWN_BOUNDS else []
        if plain in _BOUNDED:
            numbers = (given.get(argument) for argument in _BOUNDS)
            found += [float(n) for n in numbers if isinstance(n, int | float)]
        self._least_bounds |= {n for n in found if 0.0 < n < _LEAST_BOUND}
        found = [n for n in found if math.isfinite(n) and abs(n) >= _LEAST_BOUND]
        self._bounds |= {sign * n for n in found for sign in (1.0, -1.0)}

    def _note_marks(self, name: str, given: Mapping[str, Any]) -> None:
        for side, other in (("self", "other"), ("other", "self"), ("elements", "test_elements")):
            index = self._own_of(given.get(side))
            if index is not None:
                self._marks.setdefault(index, set()).update(_marks_of(name, given, other))

    def _note_tables(self, name: str, given: Mapping[str, Any]) -> None:
        table = given.get(_LOOK_UPS.get(name, ""))
        if not isinstance(table, torch.Tensor) or not table.ndim:
            return
        indices = given["indices"] if "indices" in given else given["index"]
        axes = enumerate(indices) if name == "index" else [(given.get("dim", 0), indices)]
        for axis, places in axes:
            index = self._own_of(places)
            if index is not None:
                count = table.shape[axis]
                self._tables[index] = min(self._tables.get(index, count), count)

    def _note_steps(self, name: str, given: Mapping[str, Any]) -> None:
        plain = name.rstrip("_")
        is_shift = plain in (*_SHIFTS, *(shift.rstrip("_") for shift in _SHIFTS))
        steps = given.get("other") if is_shift else given.get("exponent")
        index = self._own_of(steps) if is_shift or plain in _POWERS else None
        if index is None or not isinstance(steps, torch.Tensor) or not steps.numel():
            return
        if not is_shift:
            least = 0 if _is_of_integers(given.get("self")) else _LEAST_POWER
            self._steps[index] = (least, int(steps.max()) + _FURTHER_POWERS)
        elif _is_of_integers(given.get("self")):
            self._steps[index] = (0, 8 * given["self"].element_size() - 1)

    def _own_of(self, value: Any) -> int | None:
        return self._own.get(value) if isinstance(value, torch.Tensor) else None

    def _follow_own(
        self, func: Any, name: str, args: tuple[Any, ...], result: Any, written: Sequence[Any]
    ) -> None:
        for tensor in tree_leaves(written):
            if isinstance(tensor, torch.Tensor):
                self._own.pop(tensor, None)
        index = self._own_of(args[0]) if args else None
        is_view = any(r.alias_info is not None for r in func._schema.returns)
        if index is None or func._schema.is_mutable or not (is_view or name in _COPIES):
            return
        for tensor in tree_leaves(result):
            if _is_of_integers(tensor):
                self._own[tensor] = index
            elif isinstance(tensor, torch.Tensor) and tensor.dtype is torch.bool:
                self._marks.setdefault(index, set()).add(0)

    def _note_order(
        self, given: Mapping[str, Any], sources: Mapping[str, _Inputs], every: _Inputs
    ) -> None:
        for side in ("self", "other"):
            if sources[side] or not _has_elements(given[side]):
                continue
            self._places |= every
            length = _row_length(given[side])
            if length:
                self._lengths |= dict.fromkeys(every, length)


def _compares_floats(name: str, given: Mapping[str, Any]) -> bool:
    plain = name.rstrip("_")
    if plain not in (*_CLASSES, *_ORDERS, *_PLACED):
        return False
    tensors = [value for value in given.values() if isinstance(value, torch.Tensor)]
    # A tensor of one number is what the reference writes as one.
    return len(tensors) == 2 and all(t.is_floating_point() and t.numel() > 1 for t in tensors)


def _is_of_integers(value: Any) -> bool:
    return (
        isinstance(value, torch.Tensor)
        and not value.is_floating_point()
        and not value.is_complex()
        and value.dtype is not torch.bool
    )


def _marks_of(name: str, given: Mapping[str, Any], other: str) -> set[int]:
    """Return the numbers at which an operator's result changes, and some on either side."""
    plain = name.rstrip("_")
    numbers = _whole_numbers(given.get(other))
    if plain in _TRUTHS:
        return {0}
    if plain in _CLASSES or plain == "isin":
        return numbers
    if plain in _ORDERS:
        # The two sides of the border, seen from the tensor that is compared.
        below = plain in ("ge", "lt") if other == "other" else plain in ("gt", "le")
        return numbers | {n - 1 if below else n + 1 for n in numbers}
    if not plain.startswith("clamp") or other != "other":
        return set()
    least, most = (_whole_numbers(given.get(end)) for end in ("min", "max"))
    return {
        # A count that is kept from zero is never below it.
        *(m for n in least for m in (n, n - 1, n - abs(n) - 1) if m >= 0 or n <= 0),
        *(m for n in most for m in (n, n + 1, n + abs(n) + 1)),
    }


def _whole_numbers(value: Any) -> set[int]:
    if isinstance(value, torch.Tensor):
        is_short = _is_of_integers(value) and value.numel() <= _MOST_MARKS
        return set(value.reshape(-1).tolist()) if is_short else set()
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return {int(value)} if is_number and math.isfinite(value) and value == int(value) else set()


def _has_elements(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.numel() > 1


def _overwrites(name: str, given: Mapping[str, Any]) -> bool:
    if "unpool" in name:
        return True
    is_writing = name in _WRITING and not given.get("accumulate")
    return is_writing and any(_has_elements(given.get(source)) for source in _WRITTEN)


def _row_length(tensor: torch.Tensor) -> int:
    """Return how many whole numbers from zero on there are; 0 where there are others."""
    if tensor.is_floating_point() or tensor.dtype is torch.bool:
        return 0
    numbers = torch.arange(tensor.numel(), device=tensor.device, dtype=tensor.dtype)
    return tensor.numel() if torch.equal(tensor.reshape(-1), numbers) else 0
