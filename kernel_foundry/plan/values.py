"""The values that a plan computes with.

Numbers, strings, tuples are Python's own; a dtype is its canonical name as a string; tensors, local
memory and the device are the types here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from kernel_foundry.plan.dtypes import DTYPE_BYTES


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlanTensor:
    """A tensor of the name table, scratch of `empty` or `zeros`, or a library call's result."""

    kind: Literal["tensor", "scratch", "result"]
    name: str
    dtype: str
    """Canonical dtype name."""
    shape: tuple[int, ...]

    @property
    def element_count(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def size_bytes(self) -> int:
        """Bytes of all elements."""
        return self.element_count * DTYPE_BYTES[self.dtype]

    @property
    def strides(self) -> tuple[int, ...]:
        """Elements between neighbours, by dimension; contiguous."""
        found = []
        step = 1
        for size in reversed(self.shape):
            found.append(step)
            step *= size
        return tuple(reversed(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalMemory:
    """Work-group local memory for a SYCL local accessor."""

    count: int
    """Number of elements."""
    dtype: str
    """Canonical dtype name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLimits:
    """The device's facts that a plan may read, and the limits of its launches."""

    compute_units: int
    sub_group_size: int
    """Lanes that run together."""
    shared_bytes: int
    """Shared (local) memory that one block may use, opt-in maximum."""
    max_block: int
    """Threads (work-items) in one block."""
    memory_bytes: int
    """All of the device's memory; scratch may hold a quarter."""


@dataclass(frozen=True, slots=True)
class ParameterMap:
    """The `params` mapping: reaches parameters and buffers by dotted name."""


Value: TypeAlias = (
    int
    | float
    | bool
    | str
    | tuple["Value", ...]
    | PlanTensor
    | LocalMemory
    | DeviceLimits
    | ParameterMap
    | None
)
"""Any value of a plan; None is what a helper without `return` gives, and an argument of `ops`."""


def describe(value: Value) -> str:
    """Return the value's type and text for a message, short."""
    match value:
        case None:
            return "nothing (None, or the helper returns no value)"
        case PlanTensor(name=name):
            return f"the tensor {name}"
        case LocalMemory():
            return "local memory"
        case DeviceLimits():
            return "device"
        case ParameterMap():
            return "params"
        case str():
            text = repr(value[:40])
            return f"the string {text}"
        case tuple():
            return "a tuple"
        case bool():
            return f"{value}"
        case _:
            return f"{value!r}"
