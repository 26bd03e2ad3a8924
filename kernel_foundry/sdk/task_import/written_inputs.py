"""Which parts of its argument a function writes to, as far as its text shows."""

import ast
from collections import Counter
from collections.abc import Iterator
from typing import Final

_FLAGS: Final = {"requires_grad_"}
"""Methods that end like those that write and change no element."""


def written_inputs(function: ast.FunctionDef) -> tuple[str, ...]:
    """Return the names whose tensors are written to: the argument, or what it is unpacked into.

    Writes are `x[...] = …`, `x[...] += …`, methods such as `x.copy_()`, and `out=x`. A name that is
    bound again may stand for another tensor, and is left out.
    """
    arguments = [*function.args.posonlyargs, *function.args.args]
    if not arguments:
        return ()
    nodes = list(ast.walk(function))
    parts = [name for node in nodes for name in _unpacked(node, arguments[0].arg)]
    bound = Counter(
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )
    once = [name for name in parts if bound[name] == 1]
    if not bound[arguments[0].arg]:
        once.append(arguments[0].arg)
    written = {name for node in nodes for name in _written(node)}
    return tuple(name for name in once if name in written)


def _unpacked(node: ast.AST, argument: str) -> Iterator[str]:
    """The names that an assignment unpacks the argument into."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
        for target in node.targets if node.value.id == argument else []:
            parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
            yield from (part.id for part in parts if isinstance(part, ast.Name))


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
