"""Which parts of its argument a function writes to, as far as its text shows."""

import ast
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

_FLAGS: Final = {"requires_grad_"}
"""Methods that end like those that write and change no element."""
_SHAPES: Final = {"device", "dtype", "ndim", "shape"}
"""Attributes that no element decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenInput:
    """A part of a function's argument that it writes to."""

    name: str
    """What the function calls it."""
    position: int | None
    """Place in the argument; None where the text does not show it."""
    is_replaced: bool
    """Whether all of it is written over before any of it is read."""


def written_inputs(function: ast.FunctionDef) -> tuple[WrittenInput, ...]:
    """Return what is written to: the argument, or what it is unpacked into.

    Writes are `x[...] = …`, `x[...] += …`, methods such as `x.copy_()`, and `out=x`. A name that is
    bound again may stand for another tensor, and is left out; `x += …` leaves it the same.
    """
    arguments = [*function.args.posonlyargs, *function.args.args]
    if not arguments:
        return ()
    nodes = list(ast.walk(function))
    parts = {name: at for node in nodes for name, at in _unpacked(node, arguments[0].arg)}
    added_to = {node.target for node in nodes if isinstance(node, ast.AugAssign)}
    bound = Counter(
        node.id
        for node in nodes
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node not in added_to
    )
    once = {name: position for name, position in parts.items() if bound[name] == 1}
    if not bound[arguments[0].arg]:
        once[arguments[0].arg] = None
    written = {name for node in nodes for name in _written(node)}
    return tuple(
        WrittenInput(
            name=name,
            position=at,
            is_replaced=_is_replaced(function.body, name, arguments[0].arg),
        )
        for name, at in once.items()
        if name in written
    )


def _unpacked(node: ast.AST, argument: str) -> Iterator[tuple[str, int | None]]:
    """The names that an assignment unpacks the argument into, with their places."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
        for target in node.targets if node.value.id == argument else []:
            if isinstance(target, ast.Name):
                yield target.id, None
            elif isinstance(target, ast.Tuple | ast.List):
                is_plain = not any(isinstance(part, ast.Starred) for part in target.elts)
                for position, part in enumerate(target.elts):
                    if isinstance(part, ast.Name):
                        yield part.id, position if is_plain else None


def _is_replaced(body: Sequence[ast.stmt], name: str, argument: str) -> bool:
    """Return whether the first use of a name after it is bound replaces all of its elements."""
    for node in _in_order(body):
        if isinstance(node, ast.Assign) and any(name in _names(each) for each in node.targets):
            continue
        value = _replacing(node, name)
        if value is not None:
            return not _reads(value, {name, argument})
        if _reads(node, {name, argument}):
            return False
    return False


def _in_order(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    """What runs one after the other; a branch or a loop is one part."""
    for statement in body:
        if isinstance(statement, ast.With):
            yield from statement.items
            yield from _in_order(statement.body)
        else:
            yield statement


def _names(target: ast.expr) -> list[str]:
    parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
    return [part.id for part in parts if isinstance(part, ast.Name)]


def _replacing(node: ast.AST, name: str) -> ast.expr | None:
    """What a statement writes to all elements of `name`; None if it is another statement."""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        target = node.targets[0]
        is_whole = _is_all(target.slice) and len(node.targets) == 1
        return node.value if is_whole and name in _names(target.value) else None
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and len(call.args) == 1:
        is_copy = call.func.attr == "copy_" and name in _names(call.func.value)
        return call.args[0] if is_copy else None
    return None


def _is_all(subscript: ast.expr) -> bool:
    """Return whether it is `...` or `:`."""
    if isinstance(subscript, ast.Slice):
        return not (subscript.lower or subscript.upper or subscript.step)
    return isinstance(subscript, ast.Constant) and subscript.value is ...


def _reads(node: ast.AST, names: Container[str]) -> bool:
    """Return whether more than the shape of a tensor of these names is used."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        match found:
            case ast.Name() if found.id in names:
                return True
            case ast.Attribute(value=ast.Name()) if found.attr in _SHAPES:
                pass
            case _:
                waiting += ast.iter_child_nodes(found)
    return False


def _written(node: ast.AST) -> Iterator[str]:
    """The names whose tensors a node writes to."""
    if isinstance(node, ast.Subscript | ast.Call):
        written: list[ast.expr] = []
        if isinstance(node, ast.Call):
            written += [each.value for each in node.keywords if each.arg == "out"]
            if isinstance(node.func, ast.Attribute) and _is_in_place(node.func.attr):
                written.append(node.func.value)
        elif isinstance(node.ctx, ast.Store):
            written.append(node.value)
        yield from (each.id for each in map(_viewed, written) if isinstance(each, ast.Name))


def _is_in_place(method: str) -> bool:
    return method.endswith("_") and not method.endswith("__") and method not in _FLAGS


def _viewed(node: ast.expr) -> ast.expr:
    """What a part is taken of, as in `x[0]` and `x.data`."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node
