"""The text of a reference: its names and its module-level sizes, read without running it.

Shared by the reader of task files and by the judge. Files are read in `sdk/task_file.py`,
references run in the judge.
"""

import ast
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from kernel_foundry.domain.task import Scalar, Size, is_scalar
from kernel_foundry.domain.task_limits import LONGEST_REFERENCE
from kernel_foundry.errors import TaskInvalidError
from kernel_foundry.shown_value import shown

REQUIRED_NAMES: Final = ("Model", "get_inputs")
"""Names that every reference binds; `get_init_inputs` may be missing (no arguments)."""

_SHOWN: Final = 500
"""Characters of a line, or of names, in the text of an error."""
_MOST_NAMES: Final = 50
_DEEPEST: Final = 100
"""Of expressions that make a size."""
_LARGEST_BITS: Final = 128
"""More than any size has; products of products would grow without end."""


def parse_reference(text: str, *, file_name: str) -> ast.Module:
    """Return the tree of a reference.

    Raises:
        TaskInvalidError: it is too long, or no Python; names the line.
    """
    if len(text) > LONGEST_REFERENCE:
        raise TaskInvalidError(
            f"{file_name}: {len(text)} characters, expected at most {LONGEST_REFERENCE}",
            file=file_name,
        )
    try:
        return ast.parse(text, filename=file_name)
    except SyntaxError as error:
        raise TaskInvalidError(
            f"{file_name}, line {error.lineno}: {error.msg}: {(error.text or '').strip()[:_SHOWN]}",
            file=file_name,
            line=str(error.lineno),
        ) from error
    except (RecursionError, MemoryError) as error:
        raise TaskInvalidError(
            f"{file_name}: expressions are nested too deeply to be read", file=file_name
        ) from error
    except ValueError as error:  # source code with null bytes, on older 3.11
        raise TaskInvalidError(f"{file_name}: {error}", file=file_name) from error


def missing_names(tree: ast.Module) -> tuple[str, ...]:
    """Return which of `REQUIRED_NAMES` are bound nowhere in the module."""
    bound: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            bound.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
        elif isinstance(node, ast.alias):
            bound.add(node.asname or node.name)
    return tuple(name for name in REQUIRED_NAMES if name not in bound)


def size_constants(tree: ast.Module) -> dict[str, int]:
    """Return the sizes that a workload may override, with the value in the file.

    A size is a module-level name assigned exactly once, to an integer literal or to arithmetic
    of integer literals ("16 * 1024").
    """
    counts: dict[str, int] = {}
    values: dict[str, int] = {}
    for statement in tree.body:
        for name, value in _assignments(statement):
            counts[name] = counts.get(name, 0) + 1
            number = _integer(value)
            if number is not None:
                values[name] = number
    return {name: value for name, value in values.items() if counts[name] == 1}


def scalar_constants(tree: ast.Module) -> dict[str, object]:
    """Return the scalars that a workload may override, with the value in the file.

    A scalar is a module-level name assigned exactly once, to True or False, to a number with a
    point, or to a word.
    """
    counts: dict[str, int] = {}
    values: dict[str, object] = {}
    for statement in tree.body:
        for name, node in _assignments(statement):
            counts[name] = counts.get(name, 0) + 1
            value = _literal(node)
            if type(value) is not int and is_scalar(value):
                values[name] = value
    return {name: value for name, value in values.items() if counts[name] == 1}


def override_scalars(tree: ast.Module, scalars: Iterable[Scalar]) -> ast.Module:
    """Replace the values of module-level scalars in place.

    Raises:
        TaskInvalidError: one is no scalar of the module, or its value is of another kind.
    """
    known = scalar_constants(tree)
    wanted = {scalar.name: scalar.value for scalar in scalars}
    for name, value in wanted.items():
        if fault := scalar_fault(name, value, known):
            raise TaskInvalidError(fault, scalar=name)
    for statement in tree.body:
        for name, node in _assignments(statement):
            if name in wanted and isinstance(statement, ast.Assign | ast.AnnAssign):
                # As text: a number below zero is an expression.
                literal = ast.parse(repr(wanted[name]), mode="eval").body
                statement.value = ast.copy_location(literal, node)
    return ast.fix_missing_locations(tree)


def scalar_fault(name: str, value: object, known: Mapping[str, object]) -> str:
    """Return why a workload cannot give a scalar of the file this value; "" if it can.

    Args:
        name: The scalar.
        value: What it is to be.
        known: The file's scalars, as `scalar_constants` returns them.
    """
    if name not in known:
        listed = ", ".join(sorted(known)[:_MOST_NAMES])[:_SHOWN] or "none"
        return (
            f"{shown(name)} is not a flag, number or word of the task file that is assigned once"
            f" (the file has: {listed})"
        )
    own = known[name]
    kinds = next(kinds for kinds in _SCALAR_KINDS if type(own) in kinds)
    if type(value) in kinds and is_scalar(value):
        return ""
    return f"{name}: expected a value like the file's {shown(own)}, got {shown(value)}"


def override_sizes(tree: ast.Module, sizes: Iterable[Size]) -> ast.Module:
    """Replace the values of module-level sizes in place, so that what derives from them follows.

    Raises:
        TaskInvalidError: a size is no constant of the module.
    """
    known = size_constants(tree)
    wanted = {size.name: size.value for size in sizes}
    for name in wanted:
        if name not in known:
            raise TaskInvalidError(unknown_size(name, known), size=name)
    for statement in tree.body:
        for name, value in _assignments(statement):
            if name in wanted and isinstance(statement, ast.Assign | ast.AnnAssign):
                constant = ast.Constant(wanted[name])
                statement.value = ast.copy_location(constant, value)
    return ast.fix_missing_locations(tree)


def unknown_size(name: object, known: Iterable[str]) -> str:
    """Return the message for a constant that the file does not have."""
    names = ", ".join(sorted(known)[:_MOST_NAMES])[:_SHOWN] or "none"
    return (
        f"{shown(name)} is not a size of the task file: a workload overrides module-level names"
        " that are assigned once, to an integer, a flag, a number or a word (the file has:"
        f" {names})"
    )


def _assignments(statement: ast.stmt) -> list[tuple[str, ast.expr]]:
    if isinstance(statement, ast.Assign):
        names = [target.id for target in statement.targets if isinstance(target, ast.Name)]
        return [(name, statement.value) for name in names]
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        return [(statement.target.id, statement.value)] if statement.value else []
    return []


_SCALAR_KINDS: Final[tuple[tuple[type, ...], ...]] = ((bool,), (int, float), (str,))
"""A scalar's value is replaced by one of its own kind."""


def _literal(node: ast.expr) -> object:
    """The value of a literal, which may be below zero, else None."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError, MemoryError):
        return None


def _integer(node: ast.expr, depth: int = 0) -> int | None:
    """The value of an integer literal or of arithmetic of such, else None."""
    if isinstance(node, ast.Constant):
        return _bounded(node.value) if type(node.value) is int else None
    if not isinstance(node, ast.BinOp) or depth == _DEEPEST:
        return None
    left, right = _integer(node.left, depth + 1), _integer(node.right, depth + 1)
    if left is None or right is None:
        return None
    operation = _INTEGER_OPERATIONS.get(type(node.op))
    found = operation(left, right) if operation else None
    return None if found is None else _bounded(found)


def _bounded(value: int) -> int | None:
    return value if value.bit_length() <= _LARGEST_BITS else None


def _floor_divide(left: int, right: int) -> int | None:
    return left // right if right else None


def _power(left: int, right: int) -> int | None:
    return int(left**right) if 0 <= right <= 64 and abs(left) <= 1024 else None


_INTEGER_OPERATIONS: Final[dict[type[ast.operator], Callable[[int, int], int | None]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: _floor_divide,
    ast.Pow: _power,
}
