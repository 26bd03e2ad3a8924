"""Writes expressions over a row as C++ statements: what is inside loops and what is before them.

How an element is read and an operation is spelled comes from the language.
"""

from collections.abc import Iterable
from typing import Protocol

from generator_svc.recipes.cpp_operations import Spelling, literal
from generator_svc.recipes.expression import (
    Apply,
    ColumnCount,
    Extent,
    Literal,
    Load,
    Reduce,
    Value,
)
from generator_svc.recipes.unsupported import RecipeUnsupported


class TensorReader(Protocol):
    """How a kernel reads tensors."""

    def element(self, load: Load) -> str:
        """Return the present element of a FULL or COLUMN tensor."""
        ...

    def first(self, load: Load) -> str:
        """Return the element of such a tensor at the row's first column."""
        ...

    def row(self, load: Load) -> str:
        """Return the element of a ROW or SCALAR tensor."""
        ...


class _AtFirst:
    """Reads a row's first element where the writer asks for the present one."""

    def __init__(self, access: TensorReader) -> None:
        self._access = access
        self.row = access.row
        self.first = access.first

    def element(self, load: Load) -> str:
        return self._access.first(load)


class RowWriter:
    """Gives every value of a program a name and writes what computes it, once.

    Args:
        spelling: Of the language.
        access: How the kernel reads tensors.
        columns: Text of a row's length as a float.
    """

    def __init__(self, spelling: Spelling, access: TensorReader, *, columns: str) -> None:
        self.lines: list[str] = []
        """Statements outside of loops over the row."""
        self._spelling = spelling
        self._access = access
        self._columns = columns
        self._rows: dict[Value, str] = {}
        self._count = 0

    def fresh(self, prefix: str) -> str:
        """Return a name that is not taken."""
        self._count += 1
        return f"{prefix}{self._count}"

    def constant(self, text: str) -> str:
        """Add a constant outside of loops and return its name."""
        name = self.fresh("row")
        self.lines.append(f"const float {name} = {text};")
        return name

    def define(self, value: Value, name: str) -> None:
        """Take the name of a value of the row that the caller has computed."""
        self._rows[value] = name

    def element(
        self,
        value: Value,
        names: dict[Value, str],
        lines: list[str],
        element_type: str = "float",
    ) -> str:
        """Return the name of `value` at the present element.

        Args:
            value: What is wanted.
            names: Values that already have a name; new ones are added.
            lines: Takes the statements.
            element_type: C++ type of an element: a vector where the loop works on vectors.
        """
        return self._element(value, names, lines, element_type, self._access)

    def row(self, value: Value) -> str:
        """Return the name of a value that is the same for the whole row."""
        if value in self._rows:
            return self._rows[value]
        if isinstance(value, Literal):
            return literal(value.number)
        if isinstance(value, ColumnCount):
            return self._columns
        if isinstance(value, Load):
            text = self._access.row(value)
        elif isinstance(value, Reduce):
            if value.kind != "first":
                raise RecipeUnsupported("a reduction where only elements are at hand")
            access = _AtFirst(self._access)
            text = self._element(value.operand, {}, self.lines, "float", access)
        else:
            assert isinstance(value, Apply)
            operands = [self.row(o) for o in value.operands]
            text = self._spelling.apply(value.operation, operands, "float")
        self._rows[value] = self.constant(text)
        return self._rows[value]

    def store_rows(self, outputs: Iterable[tuple[str, Value]], condition: str) -> None:
        """Store those of `outputs` that have one value a row, where `condition` holds."""
        for output, value in outputs:
            if value.extent is Extent.ROW:
                self.lines.append(f"if ({condition}) {output}_to[row] = {self.row(value)};")

    def prepare(self, wanted: Iterable[Value], available: Value | None) -> None:
        """Compute before a loop what does not change in it.

        Args:
            wanted: What the loop computes.
            available: What it does not compute, because an earlier pass has kept it.
        """
        open_values = list(wanted)
        seen: set[Value] = {available} if available is not None else set()
        while open_values:
            value = open_values.pop()
            if value in seen:
                continue
            seen.add(value)
            if value.extent in (Extent.SCALAR, Extent.ROW):
                self.row(value)
            else:
                open_values.extend(value.arguments)

    def _element(
        self,
        value: Value,
        names: dict[Value, str],
        lines: list[str],
        element_type: str,
        access: TensorReader,
    ) -> str:
        if value in names:
            return names[value]
        if value.extent in (Extent.SCALAR, Extent.ROW):
            return self.row(value)
        if isinstance(value, Load):
            text = access.element(value)
        else:
            assert isinstance(value, Apply)
            operands = [
                self._element(o, names, lines, element_type, access) for o in value.operands
            ]
            text = self._spelling.apply(value.operation, operands, element_type)
        names[value] = self.fresh("v")
        lines.append(f"const {element_type} {names[value]} = {text};")
        return names[value]
