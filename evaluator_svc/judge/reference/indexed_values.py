"""What the whole numbers of an output look up, where an operator such as a sort made them.

Equal values leave a choice of their indices, and rounding decides between values that are nearly
equal. Found where the reference runs, by its operators: which tensor was indexed, and from which
place on for each element, also where indices are cut, turned or cast afterwards. Indices that
candidates write are held to these values in `comparison/index_comparison.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import torch
from torch.utils._pytree import tree_any, tree_leaves
from torch.utils.weak import WeakTensorKeyDictionary

from evaluator_svc.judge.reference.operators import OperatorMode, given_arguments, operator_name

PLACING: Final = frozenset({
    "_cummax_helper", "_cummin_helper", "adaptive_max_pool2d", "adaptive_max_pool3d", "argmax",
    "argmin", "cummax", "cummin", "fractional_max_pool2d", "fractional_max_pool3d", "kthvalue",
    "max", "max_pool2d_with_indices", "max_pool3d_with_indices", "median", "min", "mode",
    "nanmedian", "sort", "topk",
})  # fmt: skip
"""Names of operators that may name places of values."""

ALONE: Final = ("argmax", "argmin")
"""Those of them that return only indices."""
BESIDE: Final = ("kthvalue", "max", "median", "min", "mode", "nanmedian", "sort", "topk")
"""Those that return values, then indices. Others return places in a part of an axis."""

_INTO_ARGUMENTS: Final = ("_cummax_helper", "_cummin_helper")
"""Those that write values and indices into their second and third argument."""

_MOVES: Final = frozenset({"_to_copy", "clone", "flip", "gather", "index", "index_select", "roll"})
"""Operators that move indices, beside those that give views."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IndexedValues:
    """What some indices look up."""

    values: torch.Tensor
    """Contiguous, of one axis."""
    starts: torch.Tensor
    """Where the first value that an index may mean lies, in the shape of the indices."""
    stride: int
    """Between the values that two neighbouring numbers mean."""
    count: int
    """Indices are below it."""
    is_first: bool
    """No operator before named places: these values follow from no choice among equal ones."""
    names_first: bool
    """Of equal whole numbers or truth values the first is right: so torch says of `argmax`."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Indices:
    """Indices, held so that their identity stays their own."""

    tensor: torch.Tensor
    looked_at: torch.Tensor
    versions: tuple[int, int]
    looked_up: IndexedValues

    @property
    def is_unchanged(self) -> bool:
        """False once something was written into them, or over what they look up."""
        return (self.tensor._version, self.looked_at._version) == self.versions


class IndexLog(OperatorMode):
    """While active, notes of indices what they look up."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[int, _Indices] = {}
        """By the identity of tensors."""
        self._has_places = False
        self._following: Any = WeakTensorKeyDictionary()
        """Tensors that indices have a part in."""
        self._all_follow = False
        """Whether an index became a Python number: nobody sees where it goes."""

    def follows_indices(self, output: torch.Tensor) -> bool:
        """Return whether an output of the reference is indices, or was computed from some."""
        return self._all_follow or output in self._following

    def of(self, output: torch.Tensor) -> IndexedValues | None:
        """Return what an output of the reference looks up; None: it holds other numbers."""
        held = self._known.get(id(output))
        return held.looked_up if held is not None and held.is_unchanged else None

    def run(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run the operator and note what its indices, if it gives any, look up."""
        result = func(*args, **kwargs)
        name = operator_name(func)
        self._follow(func, name, args, kwargs, result)
        if name in PLACING:
            self._note_indices(func, name, args, kwargs, result)
            self._has_places = True
        elif args and id(args[0]) in self._known:
            self._note_moved(func, name, args, kwargs, result)
        return result

    def _follow(
        self, func: Any, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any
    ) -> None:
        given = tree_leaves((args, kwargs))
        if any(isinstance(t, torch.Tensor) and t in self._following for t in given):
            self._all_follow |= name == "_local_scalar_dense"
            found = tree_leaves((result, args[:1] if func._schema.is_mutable else ()))
            # What is written into a view is in what it is a view of.
            found += [t._base for t in found if isinstance(t, torch.Tensor) and t._base is not None]
        elif name in _INTO_ARGUMENTS:
            found = list(args[2:3])
        elif name in PLACING:
            # Values come before indices; one tensor alone holds values.
            found = [result] if name in ALONE else _beside_values(result)
        else:
            return
        for tensor in found:
            if isinstance(tensor, torch.Tensor):
                self._following[tensor] = True

    def _note_indices(
        self, func: Any, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any
    ) -> None:
        is_pair = isinstance(result, tuple) and name in BESIDE
        if func._schema.is_mutable or not (is_pair or name in ALONE):
            return
        given = given_arguments(func, args, kwargs)
        indices, looked_at = result[1] if is_pair else result, given["self"]
        if given.get("stable") or not looked_at.numel():
            return  # one answer alone is right
        axis = given.get("dim")
        shape = looked_at.shape
        if axis is None or not looked_at.ndim:  # of all elements
            shape, axis = torch.Size((looked_at.numel(),)), 0
        axis %= len(shape)
        looked_up = IndexedValues(
            values=looked_at.contiguous().view(-1),
            starts=_starts(shape, axis, indices),
            stride=shape[axis + 1 :].numel(),
            count=shape[axis],
            is_first=not self._has_places,
            names_first=name in ALONE and not looked_at.is_floating_point(),
        )
        self._note(indices, looked_up, looked_at)

    def _note_moved(
        self, func: Any, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any
    ) -> None:
        is_view = any(r.alias_info is not None for r in func._schema.returns)
        moves = (is_view or name in _MOVES) and not func._schema.is_mutable
        rest = (args[1:], tuple(kwargs.values()))
        if not moves or not isinstance(result, torch.Tensor) or tree_any(self._is_known, rest):
            return
        old = self.of(args[0])
        if old is None:
            return
        is_cast = name == "_to_copy"
        starts = old.starts if is_cast else func(old.starts, *args[1:], **kwargs)
        self._note(result, replace(old, starts=starts), self._known[id(args[0])].looked_at)

    def _is_known(self, value: Any) -> bool:
        return id(value) in self._known

    def _note(
        self, indices: torch.Tensor, looked_up: IndexedValues, looked_at: torch.Tensor
    ) -> None:
        self._known[id(indices)] = _Indices(
            tensor=indices,
            looked_at=looked_at,
            versions=(indices._version, looked_at._version),
            looked_up=looked_up,
        )


def _beside_values(result: Any) -> list[Any]:
    return list(result[1:]) if isinstance(result, tuple) else []


def _starts(shape: torch.Size, axis: int, indices: torch.Tensor) -> torch.Tensor:
    """Return where the values begin that each index chooses from, in the shape of the indices."""
    inner, length = shape[axis + 1 :].numel(), shape[axis]
    outer = shape[:axis].numel()
    device = indices.device
    first = torch.arange(outer, device=device)[:, None, None] * (length * inner)
    first = first + torch.arange(inner, device=device)
    return first.expand(outer, indices.numel() // (outer * inner), inner).reshape(indices.shape)
