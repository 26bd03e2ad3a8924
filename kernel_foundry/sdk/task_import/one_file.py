"""A reference and the modules of its suite that it imports, as the text of one file."""

import ast
import sys
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import Final

from kernel_foundry.sdk.task_import.entry import NotRepresentableError
from kernel_foundry.sdk.task_import.source_text import bound_names, parsed
from kernel_foundry.sdk.task_import.suite_files import SuiteFiles

FindModule = Callable[[str], str | None]
"""Returns the path of one of the suite's modules; None for a module that is not the suite's."""
_MOST_MODULES: Final = 100
_INSTALLED: Final = sys.stdlib_module_names | {"numpy", "torch"}
"""Modules that are meant even where a file of the suite is called like them."""


def one_file(files: SuiteFiles, path: str, find: FindModule | None = None) -> str:
    """Return the text of a file after those of the suite's modules that it imports, each once.

    A text that imports none of them is returned as it stands. Without `find` they are looked for
    beside the file and then in the suite's folder.

    Raises:
        NotRepresentableError: a text is no Python, imports in a way that one file cannot keep, or
            defines what another one defines; else as `SuiteFiles.text`.
    """
    texts = list(_Modules(files, find or _beside(files, path)).texts(path))
    return files.text(path) if len(texts) == 1 else "\n\n\n".join(texts) + "\n"


def _beside(files: SuiteFiles, path: str) -> FindModule:
    folder = PurePosixPath(path).parent

    def find(module: str) -> str | None:
        if not module or module.partition(".")[0] in _INSTALLED:
            return None
        name = module.replace(".", "/")
        for place in (folder, PurePosixPath()):
            for found in (str(place / f"{name}.py"), str(place / name / "__init__.py")):
                if files.has(found):
                    return found
        return None

    return find


class _Modules:
    """The texts of modules, each after those that it imports."""

    def __init__(self, files: SuiteFiles, find: FindModule) -> None:
        self._files = files
        self._find = find
        self._names: dict[str, set[str]] = {}
        """The names that each module binds, by its path; empty while it is being read."""
        self._owner: dict[str, str] = {}

    def texts(self, path: str) -> Iterator[str]:
        """Return the texts, of what is imported first."""
        if len(self._names) == _MOST_MODULES:
            raise NotRepresentableError(f"imports more than {_MOST_MODULES} modules of the suite")
        self._names[path] = set()
        text = self._files.text(path)
        tree = parsed(text, path)
        lines = text.splitlines(keepends=True)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module == "__future__":
                _replace(lines, node, tree, [])
            elif isinstance(node, ast.Import | ast.ImportFrom) and self._is_local(node, path):
                wanted = self._wanted(node, path)
                if wanted is None or not isinstance(node, ast.ImportFrom) or node not in tree.body:
                    raise NotRepresentableError(
                        f"{path}, line {node.lineno}: `{ast.unparse(node)[:100]}`: of the suite's"
                        " own modules, which become one file, only `from MODULE import NAME` at the"
                        " top level can be read"
                    )
                if wanted not in self._names:
                    yield from self.texts(wanted)
                self._check_bound(node, wanted)
                replaced = [f"{a.asname} = {a.name}" for a in node.names if a.asname]
                _replace(lines, node, tree, replaced)
        self._check_owners(tree, path)
        self._names[path] = bound_names(tree)
        yield "".join(lines).strip()

    def _is_local(self, node: ast.Import | ast.ImportFrom, path: str) -> bool:
        if isinstance(node, ast.ImportFrom):
            return bool(node.level) or self._wanted(node, path) is not None
        return any(self._find(alias.name) for alias in node.names)

    def _wanted(self, node: ast.Import | ast.ImportFrom, path: str) -> str | None:
        """Return the path of the module that names are imported from."""
        if isinstance(node, ast.Import) or not node.module or node.level > 1:
            return None
        return _beside(self._files, path)(node.module) if node.level else self._find(node.module)

    def _check_bound(self, node: ast.ImportFrom, wanted: str) -> None:
        """Refuse names that are modules of a package, or made in another way than by binding."""
        names = self._names[wanted]
        missing = [alias.name for alias in node.names if alias.name not in {*names, "*"}]
        if names and missing:
            raise NotRepresentableError(f"{wanted} does not bind {missing[0]}")

    def _check_owners(self, tree: ast.Module, path: str) -> None:
        """Refuse two modules that define the same name: in one file the later would win."""
        others = [n for n in tree.body if not isinstance(n, ast.Import | ast.ImportFrom)]
        for name in sorted(bound_names(ast.Module(body=others, type_ignores=[]))):
            if self._owner.setdefault(name, path) != path:
                raise NotRepresentableError(f"{path} and {self._owner[name]} both define {name}")


def _replace(lines: list[str], node: ast.ImportFrom, tree: ast.Module, by: list[str]) -> None:
    first, last = node.lineno, node.end_lineno or node.lineno
    for other in tree.body:
        if other is not node and other.lineno <= last and (other.end_lineno or 0) >= first:
            raise NotRepresentableError(f"line {first}: an import beside another statement")
    for index in range(first - 1, last):
        lines[index] = "\n"
    lines[first - 1] = "".join(f"{line}\n" for line in by) or "\n"
