"""Where the sizes of the inputs are in a task file: named at module level, or plain numbers.

A module-level size may stand in several places of `get_inputs`, as in the shape of a square,
and a number may have no name. Each place has a key: `width#2` is the second one of
the size `width`, `get_inputs#3` the third number in `get_inputs`. Workloads that are generated
override single places; those of a sidecar have names alone.
"""

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from evaluator_svc.sizes.argument_numbers import PREFIX
from kernel_foundry.domain.task import Size
from kernel_foundry.errors import TaskInvalidError
from kernel_foundry.task_source import override_sizes, size_constants, unknown_size

INITIAL: Final = "get_init_inputs"
"""The function whose numbers decide the weights' shapes."""
_INPUTS: Final = "get_inputs"
_MARK: Final = "#"


@dataclass(frozen=True, slots=True, kw_only=True)
class SizePlace:
    """A place in the text that a number decides."""

    key: str
    value: int
    name: str
    """The module-level size that is used there; empty: a plain number."""
    tensor: tuple[int, int]
    """Position of the innermost call or tuple around it: the same for all sizes of one tensor."""

    @property
    def is_initial(self) -> bool:
        """Whether it decides weights only."""
        return self.key.startswith(INITIAL + _MARK)


def size_places(tree: ast.Module) -> tuple[SizePlace, ...]:
    """Return the places in order, with the values that the file has there."""
    return tuple(place for place, _ in _places(tree))


def override_places(tree: ast.Module, sizes: Iterable[Size]) -> ast.Module:
    """Replace sizes in `tree`, also those of single places; skip numbers of forward's arguments.

    Raises:
        TaskInvalidError: a size is neither a constant of the module nor a place of it.
    """
    wanted = tuple(size for size in sizes if not size.name.startswith(PREFIX))
    at_places = {size.name: size.value for size in wanted if _MARK in size.name}
    if at_places:
        nodes = {place.key: node for place, node in _places(tree)}
        for key in at_places:
            if key not in nodes:
                raise TaskInvalidError(unknown_size(key, nodes), size=key)
        _Replaced({id(nodes[key]): value for key, value in at_places.items()}).visit(tree)
    return override_sizes(tree, (size for size in wanted if size.name not in at_places))


def _places(tree: ast.Module) -> Iterator[tuple[SizePlace, ast.expr]]:
    known = size_constants(tree)
    counts: Counter[str] = Counter()
    for statement in tree.body:
        owner = _owner(statement)
        if not owner:
            continue
        negative = {
            id(node.operand)
            for node in ast.walk(statement)
            if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
        }
        calls = _innermost_calls(statement)
        counts_inputs = _repetitions(statement)
        for node in sorted(_leaves(statement), key=lambda n: (n.lineno, n.col_offset)):
            if id(node) in counts_inputs:
                continue
            tensor = calls[id(node)]
            if isinstance(node, ast.Name):
                is_read = isinstance(node.ctx, ast.Load)
                if is_read and node.id in known and owner != INITIAL:
                    counts[node.id] += 1
                    key = f"{node.id}{_MARK}{counts[node.id]}"
                    place = SizePlace(key=key, value=known[node.id], name=node.id, tensor=tensor)
                    yield place, node
            elif type(node.value) is int and node.value > 1 and id(node) not in negative:
                counts[owner] += 1
                key = f"{owner}{_MARK}{counts[owner]}"
                yield SizePlace(key=key, value=node.value, name="", tensor=tensor), node


def _leaves(statement: ast.stmt) -> Iterator[ast.Name | ast.Constant]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Name | ast.Constant):
            yield node


def _repetitions(statement: ast.stmt) -> set[int]:
    """Return the nodes that say how often a comprehension repeats, by identity.

    They decide how many inputs there are, which no workload changes.
    """
    return {
        id(node)
        for found in ast.walk(statement)
        if isinstance(found, ast.comprehension)
        for node in ast.walk(found.iter)
    }


def _innermost_calls(statement: ast.stmt) -> dict[int, tuple[int, int]]:
    """Return where the innermost call around each node lies, or the statement, by identity."""
    found = dict[int, tuple[int, int]]()
    waiting: list[tuple[ast.AST, tuple[int, int]]] = [
        (statement, (statement.lineno, statement.col_offset))
    ]
    while waiting:
        node, place = waiting.pop()
        found[id(node)] = place
        inside = (node.lineno, node.end_col_offset or 0) if isinstance(node, ast.Call) else place
        waiting += [(child, inside) for child in ast.iter_child_nodes(node)]
    return found


def _owner(statement: ast.stmt) -> str:
    """Return what places in a statement are called after; empty where it decides no shape."""
    if isinstance(statement, ast.FunctionDef):
        return statement.name if statement.name in (_INPUTS, INITIAL) else ""
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Tuple | ast.List):
        target = statement.targets[0]
        return target.id if isinstance(target, ast.Name) else ""
    return ""


class _Replaced(ast.NodeTransformer):
    def __init__(self, values: dict[int, int]) -> None:
        self._values = values

    def _visit_leaf(self, node: ast.expr) -> ast.expr:
        value = self._values.get(id(node))
        return node if value is None else ast.copy_location(ast.Constant(value), node)

    visit_Name = _visit_leaf  # noqa: N815  the name that ast asks for
    visit_Constant = _visit_leaf  # noqa: N815
