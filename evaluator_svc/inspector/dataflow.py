"""Operations and operands of a function's values, as far as recurrences are recognised by them.

The same for every language; values are numbers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto


class Kind(Enum):
    """How a value is computed."""

    ADD = auto()
    SUBTRACT = auto()
    MULTIPLY = auto()
    DIVIDE = auto()
    MULTIPLY_ADD = auto()
    """First operand times second plus third."""
    EXPONENTIAL = auto()
    CHOICE = auto()
    """One of its operands, by the way that control took or by a condition."""
    LOAD = auto()
    OTHER = auto()


@dataclass(frozen=True, slots=True)
class Node:
    """One value."""

    id: int
    kind: Kind
    operands: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LoopValue:
    """A floating-point value that a loop carries from turn to turn."""

    value: int
    """At the start of a turn."""
    update: int
    """At its end."""
    lanes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataflow:
    """A function's values, and what its loops carry."""

    nodes: Mapping[int, Node]
    carried: tuple[tuple[LoopValue, ...], ...]
    """For each loop."""
    heads: frozenset[int]
    """Values at the start of a turn, of all loops."""
    array_updates: tuple[int, ...] = ()
    """Values that loops store into private arrays of a tile's size."""
    array_loads: frozenset[int] = frozenset()
    """Loads from private arrays."""
