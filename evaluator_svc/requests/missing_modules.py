"""Modules that a reference imports and this host lacks: told before a judge is started.

The judge has this process's interpreter. Nothing is imported: a package of the first part of a
name is looked up, no more.
"""

import ast
import importlib.util
from collections.abc import Iterator
from importlib.machinery import PathFinder

from evaluator_svc.sandbox.host_paths import package_root
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import TaskInvalidError
from kernel_foundry.shown_value import shown
from kernel_foundry.task_source import parse_reference


def check_imports(task: Task) -> None:
    """Refuse a task whose reference imports at its top level what is not here.

    An import in a `try`, an `if` or a function may never be made, and what code before an import
    does may decide what it finds: nobody looks these up.

    Raises:
        TaskInvalidError: a module is missing, or the reference is no Python; names the line.
    """
    name = task.name or "task.reference"
    for module, line in _imported(parse_reference(task.reference, file_name=name)):
        if not _is_here(module):
            raise TaskInvalidError(
                f"{name}, line {line}: the file imports {shown(module)}, which is not installed"
                " where the evaluator runs. Install it there, or write the reference without it",
                task=task.name,
                line=str(line),
            )


def _imported(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield the first part of each imported name, with its line."""
    for statement in tree.body:
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                yield alias.name.partition(".")[0], statement.lineno
        elif isinstance(statement, ast.ImportFrom) and not statement.level and statement.module:
            yield statement.module.partition(".")[0], statement.lineno
        elif not isinstance(statement, ast.ImportFrom) and not _is_text(statement):
            return


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_here(module: str) -> bool:
    try:
        found = importlib.util.find_spec(module)
    except ValueError:  # a module that is loaded and has no specification, such as __main__
        return True
    # A judge finds what lies beside our packages, too.
    return found is not None or PathFinder.find_spec(module, [package_root()]) is not None
