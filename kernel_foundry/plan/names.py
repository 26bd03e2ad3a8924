"""The name table: everything of a task that a launch plan may name.

Generated at admission, printed in every prompt, used to bind a plan. The judge makes it in
`evaluator_svc/judge/reference/name_table.py`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from kernel_foundry.plan.dtypes import DTYPE_BYTES

TensorRole: TypeAlias = Literal["input", "parameter", "buffer", "output"]
ScalarValue: TypeAlias = int | float | bool | str | tuple[int | float, ...]

_ROLE_ORDER: Final = {"input": 0, "parameter": 1, "buffer": 2, "output": 3}
_PROMISES: Final = (
    "Promises: every tensor is contiguous, 256-byte aligned, and aliases no other.\n"
    "Ranks and dtypes never change between workloads; sizes may."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorName:
    """A tensor that a plan may name."""

    name: str
    """The identifier in the plan."""
    dtype: str
    """Canonical dtype such as "float32"."""
    shape: tuple[int, ...]
    """Sizes in this workload, outermost first; the tensor is contiguous."""
    role: TensorRole
    """Where it comes from."""
    path: str
    """Dotted original name, such as "layers.0.weight"."""

    def __post_init__(self) -> None:
        """Refuse a dtype or a role that no kernel could be given."""
        if self.dtype not in DTYPE_BYTES:
            raise ValueError(f"tensor {self.name!r} has the unknown dtype {self.dtype!r}")
        if self.role not in _ROLE_ORDER:
            raise ValueError(f"tensor {self.name!r} has the unknown role {self.role!r}")
        if any(size < 0 for size in self.shape):
            raise ValueError(f"tensor {self.name!r} has a negative size in {self.shape}")

    @property
    def size_bytes(self) -> int:
        """Bytes of all elements."""
        return math.prod(self.shape) * DTYPE_BYTES[self.dtype]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarName:
    """A constant attribute of the module that a plan may name."""

    name: str
    """The identifier in the plan."""
    value: ScalarValue
    """Its value; the same in every workload unless it derives from a size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NameTable:
    """All names of one workload.

    Args:
        tensors: Inputs, parameters, buffers and outputs.
        scalars: Public scalar attributes.
    """

    tensors: tuple[TensorName, ...]
    scalars: tuple[ScalarName, ...] = ()

    def __post_init__(self) -> None:
        """Refuse two things of one name: a plan could not tell them apart."""
        seen: set[str] = set()
        for name in self.all_names:
            if name in seen:
                raise ValueError(f"the name table holds {name!r} twice")
            seen.add(name)

    @property
    def outputs(self) -> tuple[TensorName, ...]:
        """The tensors that the plan has to fill."""
        return tuple(tensor for tensor in self.tensors if tensor.role == "output")

    @property
    def all_names(self) -> tuple[str, ...]:
        """Every name, in the order of `render`."""
        tensors = (tensor.name for tensor in self._sorted_tensors())
        return (*tensors, *(scalar.name for scalar in self._sorted_scalars()))

    def lookup(self, name: str) -> TensorName | ScalarName | None:
        """Return the entry of `name`; `out` and `out0` are the same if there is one output."""
        entries: tuple[TensorName | ScalarName, ...] = (*self.tensors, *self.scalars)
        for entry in entries:
            if entry.name == name:
                return entry
        if name in ("out", "out0") and len(self.outputs) == 1:
            return self.outputs[0]
        return None

    def parameter(self, path: str) -> TensorName | None:
        """Return the parameter or buffer with the dotted original name `path`."""
        for tensor in self.tensors:
            if tensor.path == path and tensor.role in ("parameter", "buffer"):
                return tensor
        return None

    def render(self) -> str:
        """Return the table as it is printed in prompts: sorted, with the promises."""
        rows = [
            (tensor.name, f"{tensor.dtype} {_shape(tensor.shape)}", _origin(tensor))
            for tensor in self._sorted_tensors()
        ]
        rows += [
            (scalar.name, f"{type(scalar.value).__name__} {scalar.value!r}", "scalar")
            for scalar in self._sorted_scalars()
        ]
        widths = [max((len(row[column]) for row in rows), default=0) for column in (0, 1)]
        lines = [
            f"{name.ljust(widths[0])}  {what.ljust(widths[1])}  {origin}"
            for name, what, origin in rows
        ]
        return "\n".join([*lines, _PROMISES])

    def _sorted_tensors(self) -> list[TensorName]:
        return sorted(self.tensors, key=lambda t: (_ROLE_ORDER[t.role], _natural(t.name)))

    def _sorted_scalars(self) -> list[ScalarName]:
        return sorted(self.scalars, key=lambda scalar: _natural(scalar.name))


def _origin(tensor: TensorName) -> str:
    if tensor.role in ("parameter", "buffer"):
        return f'{tensor.role}, also params["{tensor.path}"]'
    return tensor.role


def _shape(shape: tuple[int, ...]) -> str:
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def _natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """A sort key in which out2 stands before out10."""
    return tuple(
        (0, int(part), "") if part.isdecimal() else (1, 0, part)
        for part in re.split(r"(\d+)", name)
        if part
    )
