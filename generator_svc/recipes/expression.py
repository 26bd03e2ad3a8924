"""Expressions over the rows of a matrix: what a row recipe computes.

A value is one number for each element (FULL), each row (ROW), each column (COLUMN) or the whole
(SCALAR).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property


class Extent(IntEnum):
    """Where a value varies; the larger of two is the extent of their combination."""

    SCALAR = 0
    COLUMN = 1
    ROW = 2
    FULL = 3


@dataclass(frozen=True, kw_only=True, eq=False)
class Value:
    """A node of the expression graph; the same object is the same computation."""

    extent: Extent

    @cached_property
    def arguments(self) -> tuple["Value", ...]:
        """Values that this one is computed from."""
        return ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Load(Value):
    """An element of a named tensor."""

    name: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Literal(Value):
    """A number of the reference's text."""

    number: float


@dataclass(frozen=True, kw_only=True, eq=False)
class ColumnCount(Value):
    """The length of a row."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Apply(Value):
    """An operation on each element, such as "add" or "gelu"."""

    operation: str
    operands: tuple[Value, ...]

    @cached_property
    def arguments(self) -> tuple[Value, ...]:
        """The operands."""
        return self.operands


@dataclass(frozen=True, kw_only=True, eq=False)
class Reduce(Value):
    """A reduction of a row.

    It is "sum", "max", "min", "first" (the row's first element) or "exp_sum" (the sum of
    exp(value - maximum)).
    """

    kind: str
    operand: Value

    @cached_property
    def arguments(self) -> tuple[Value, ...]:
        """The operand."""
        return (self.operand,)


def apply(operation: str, *operands: Value) -> Value:
    """Return `operation` on `operands`; its extent is the union of theirs.

    A division by a row's value becomes a product: one division a row, not one an element.
    """
    if operation == "div" and operands[0].extent is Extent.FULL:
        dividend, divisor = operands
        if divisor.extent in (Extent.ROW, Extent.SCALAR):
            return apply("mul", dividend, apply("div", literal(1), divisor))
    extents = {o.extent for o in operands}
    extent = max(extents)
    if {Extent.ROW, Extent.COLUMN} <= extents:
        extent = Extent.FULL
    return Apply(extent=extent, operation=operation, operands=operands)


def literal(number: float) -> Value:
    """Return a constant."""
    return Literal(extent=Extent.SCALAR, number=float(number))


def reduce(kind: str, operand: Value) -> Value:
    """Return the reduction of `operand` over its row."""
    return Reduce(extent=Extent.ROW, kind=kind, operand=operand)


COLUMNS = ColumnCount(extent=Extent.SCALAR)


def mean(value: Value) -> Value:
    """Return the mean of a row."""
    return apply("div", reduce("sum", value), COLUMNS)


def level(value: Value, known: dict[Value, int] | None = None) -> int:
    """Return how many passes over the row come before `value` can be computed."""
    known = {} if known is None else known
    if value not in known:
        below = max((level(a, known) for a in value.arguments), default=0)
        # "first" needs one element, no pass.
        is_pass = isinstance(value, Reduce) and value.kind != "first"
        known[value] = below + is_pass
    return known[value]


_COSTS = {"gelu": 12, "gelu_tanh": 12, "erf": 10, "exp": 6, "tanh": 8, "sigmoid": 8, "silu": 8,
          "log": 6, "softplus": 12, "pow": 12}  # fmt: skip


def cost(value: Value, known: dict[Value, int] | None = None) -> int:
    """Return roughly what computing `value` from memory costs, in additions."""
    known = {} if known is None else known
    if value not in known:
        own = _COSTS.get(value.operation, 1) if isinstance(value, Apply) else 1
        is_reduction = isinstance(value, Reduce)
        known[value] = 0 if is_reduction else own + sum(cost(a, known) for a in value.arguments)
    return known[value]


def operations(values: tuple[Value, ...]) -> frozenset[str]:
    """Return the names of all operations and reductions that `values` need."""
    found: set[str] = set()
    seen: set[Value] = set()
    open_values = list(values)
    while open_values:
        value = open_values.pop()
        if value in seen:
            continue
        seen.add(value)
        if isinstance(value, Apply):
            found.add(value.operation)
        elif isinstance(value, Reduce):
            found.add(value.kind)
        open_values.extend(value.arguments)
    return frozenset(found)


def loaded_tensors(values: Iterable[Value]) -> tuple[str, ...]:
    """Return the names of all tensors that `values` read, in order of first use."""
    found: dict[str, None] = {}
    seen: set[Value] = set()

    def visit(value: Value) -> None:
        if value in seen:
            return
        seen.add(value)
        if isinstance(value, Load):
            found[value.name] = None
        for argument in value.arguments:
            visit(argument)

    for value in values:
        visit(value)
    return tuple(found)
