"""A parsed and checked plan: the typed tree that the interpreter walks.

Kernels, tensors and values come in `bind.py`.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TypeAlias

TuneValue: TypeAlias = int | float | bool | str
"""A value of TUNE and of CONST: what can become a macro of the device code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneParameter:
    """One entry of TUNE."""

    name: str
    values: tuple[TuneValue, ...]
    """The search space; the first value is the default."""
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """An expression of CONST or WHERE."""

    name: str
    """The CONST name; empty in WHERE."""
    text: str
    """As written, for messages."""
    node: ast.expr
    """Checked: holds only what the language has."""
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFunction:
    """`launch`, `prepare` or a helper."""

    name: str
    parameters: tuple[str, ...]
    body: tuple[ast.stmt, ...]
    """Checked: holds only what the language has."""
    line: int

    @property
    def assigned(self) -> frozenset[str]:
        """Names that it assigns."""
        nodes = (node for statement in self.body for node in ast.walk(statement))
        return frozenset(
            n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """A top-level constant."""

    name: str
    node: ast.expr
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A whole launch plan."""

    text: str
    """As written."""
    tune: tuple[TuneParameter, ...]
    const: tuple[Expression, ...]
    where: tuple[Expression, ...]
    constants: tuple[Constant, ...]
    """In order; a constant may use those above it."""
    helpers: tuple[PlanFunction, ...]
    launch: PlanFunction
    prepare: PlanFunction | None = None

    @property
    def macro_names(self) -> tuple[str, ...]:
        """Names of TUNE and CONST: macros of the device code."""
        return (*(entry.name for entry in self.tune), *(entry.name for entry in self.const))

    def helper(self, name: str) -> PlanFunction | None:
        """Return the helper called `name`."""
        return next((helper for helper in self.helpers if helper.name == name), None)
