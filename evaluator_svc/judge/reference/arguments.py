"""The arguments of a reference's forward: which of them are tensors, and what they are called."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from evaluator_svc.sizes.argument_numbers import changed_value
from kernel_foundry.domain.task import Size
from kernel_foundry.errors import TaskInvalidError


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """What forward is called with, in order."""

    names: tuple[str, ...]
    """One for each tensor; a list of tensors gives `x0`, `x1`, …"""
    tensors: tuple[torch.Tensor, ...]
    constants: tuple[tuple[str, Any], ...]
    """Arguments that are no tensors, by name."""
    template: tuple[Any, ...]
    """Arguments with a `_Place` wherever a tensor stands."""

    def values(self, tensors: Sequence[torch.Tensor]) -> list[Any]:
        """Return the arguments with `tensors` in place of the tensors."""
        return [_fill(item, tensors) for item in self.template]

    @property
    def places(self) -> list[tuple[str, Any]]:
        """Each argument as ("value", v), ("tensor", i) or ("tensors", (i, …))."""
        return [_place(item) for item in self.template]


@dataclass(frozen=True, slots=True)
class _Place:
    index: int


def read_arguments(
    model: nn.Module, values: Sequence[Any], sizes: Sequence[Size] = ()
) -> Arguments:
    """Return the arguments `values` with the names that `model.forward` gives them.

    `sizes`: of a workload that may give other values to numbers.

    Raises:
        TaskInvalidError: they do not fit the signature, or hold something that is neither
            tensor, list of tensors nor constant.
    """
    names: list[str] = []
    tensors: list[torch.Tensor] = []
    constants: list[tuple[str, Any]] = []
    template: list[Any] = []

    def place(name: str, tensor: torch.Tensor) -> _Place:
        names.append(name)
        tensors.append(tensor.contiguous())
        return _Place(len(tensors) - 1)

    for name, value in zip(_argument_names(model, len(values)), values, strict=True):
        if isinstance(value, torch.Tensor):
            template.append(place(name, value))
        elif isinstance(value, list | tuple) and any(isinstance(v, torch.Tensor) for v in value):
            if not all(isinstance(v, torch.Tensor) for v in value):
                raise TaskInvalidError(f"argument {name!r} mixes tensors and other values")
            template.append([place(f"{name}{i}", v) for i, v in enumerate(value)])
        elif value is None or isinstance(value, int | float | bool | str | tuple | list):
            constant = changed_value(name, value, sizes)
            constants.append((name, constant))
            template.append(constant)
        else:
            raise TaskInvalidError(
                f"argument {name!r} is a {type(value).__name__}; expected tensors, lists of"
                " tensors or constants"
            )
    return Arguments(
        names=tuple(names),
        tensors=tuple(tensors),
        constants=tuple(constants),
        template=tuple(template),
    )


def _argument_names(model: nn.Module, count: int) -> list[str]:
    names: list[str] = []
    for parameter in inspect.signature(model.forward).parameters.values():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}{i}" for i in range(count - len(names))]
        elif parameter.kind in (
            inspect.Parameter.POSITIONAL_ONLY,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
        ):
            names.append(parameter.name)
    if len(names) < count:
        raise TaskInvalidError(
            f"get_inputs() gives {count} values, but forward takes {len(names)}: {names}"
        )
    return names[:count]


def _place(item: Any) -> tuple[str, Any]:
    if isinstance(item, _Place):
        return "tensor", item.index
    if isinstance(item, list) and item and isinstance(item[0], _Place):
        return "tensors", tuple(place.index for place in item)
    return "value", item


def _fill(item: Any, tensors: Sequence[torch.Tensor]) -> Any:
    if isinstance(item, _Place):
        return tensors[item.index]
    if isinstance(item, list) and item and isinstance(item[0], _Place):
        return [tensors[place.index] for place in item]
    return item
