"""Python text of a suite, parsed and extended: what it binds, and what is added at its end."""

import ast
import builtins
import keyword
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Final

from kernel_foundry.errors import TaskInvalidError
from kernel_foundry.sdk.task_import.entry import NotRepresentableError
from kernel_foundry.shown_value import shown
from kernel_foundry.task_source import parse_reference

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_OURS: Final = {
    *("Model", "get_inputs", "get_init_inputs", "torch", "nn", "held_out", "random", "inspect")
}
_ADDED: Final = "# Added by `kfoundry import`; what stands above is the suite's own."


def parsed(text: str, where: str) -> ast.Module:
    """Return the tree of a text.

    Raises:
        NotRepresentableError: it is no Python.
    """
    try:
        return parse_reference(text, file_name=where)
    except TaskInvalidError as error:
        raise NotRepresentableError(error.message) from error


def check_identifier(name: object, what: str) -> str:
    """Return `name` if it can stand as a name in Python.

    Raises:
        NotRepresentableError: it cannot.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise NotRepresentableError(f"{what} {shown(name)} is not a plain name")
    return name


def bound_names(tree: ast.Module) -> set[str]:
    """Return the names that a module binds at its top level, or by `global`."""
    names = {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
    for node in _top_level(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).split(".")[0])
    return names


def function_of(tree: ast.Module, name: str) -> ast.FunctionDef | None:
    """Return the module's function of that name, the last if there are several."""
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name]
    return found[-1] if found else None


def check_keywords(function: ast.FunctionDef, given: Container[str], names: Iterable[str]) -> None:
    """Refuse arguments that a function does not take, and those that it misses.

    Raises:
        NotRepresentableError: it names the argument.
    """
    arguments = function.args
    plain = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    needed = plain[: len(plain) - len(arguments.defaults)]
    alone = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    needed += [a.arg for a, default in alone if default is None]
    missing = [name for name in needed if name not in given and name != "self"]
    if missing:
        raise NotRepresentableError(f"{function.name} needs {missing[0]}, which no setting gives")
    if arguments.kwarg:
        return
    taken = keywords_of(function)
    unknown = [name for name in names if name not in taken]
    if unknown:
        raise NotRepresentableError(f"{function.name} does not take {unknown[0]}")


def keywords_of(function: ast.FunctionDef) -> set[str]:
    """Return the names that may be given by keyword."""
    return {a.arg for a in (*function.args.args, *function.args.kwonlyargs)} - {"self"}


def free_names(names: Iterable[str], taken: set[str]) -> dict[str, str]:
    """Return for each name one that the module may bind: itself, unless it is taken."""
    used = taken | set(dir(builtins)) | _OURS
    found = {}
    for name in names:
        free = name
        while free in used:
            free += "_size"
        used.add(free)
        found[name] = free
    return found


def extended(text: str, constants: Mapping[str, int | float], added: str) -> str:
    """Return a text with constants and `added` after it."""
    lines = [f"{name} = {value!r}" for name, value in constants.items()]
    block = "\n".join([_ADDED, *lines])
    return f"{text.rstrip()}\n\n\n{block}\n\n\n{added.strip()}\n"


def _top_level(tree: ast.Module) -> Iterator[ast.AST]:
    """Nodes of the module outside of functions, classes and lambdas; those themselves too."""
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)
