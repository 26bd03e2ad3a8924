"""Reads files with foreign kernels; nothing in them is run.

A Python file with a class `ModelNew` or a function `custom_kernel`, or a solution of FlashInfer
Trace or SOL-ExecBench as JSON.
"""

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from kernel_foundry.bounded_json import parse_json
from kernel_foundry.domain.foreign import (
    LONGEST_FOREIGN,
    MOST_FILES,
    ForeignFile,
    ForeignForm,
    ForeignSource,
)
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.shown_value import shown
from kernel_foundry.text_file import read_text_file

FOREIGN_ENDINGS: Final = (".py", ".json")
_MODEL: Final = "ModelNew"
_REFERENCE_MODEL: Final = "Model"
_FUNCTION: Final = "custom_kernel"


def read_foreign(path: Path) -> ForeignSource:
    """Return the kernel that a file holds.

    Raises:
        InvalidArgumentError: it cannot be read, or holds no kernel in a form that can be judged.
    """
    text = read_text_file(path, LONGEST_FOREIGN)
    if path.suffix == ".json":
        return solution_of(text, str(path))
    return python_of(text, str(path))


def python_of(text: str, name: str, *, takes_model: bool = False) -> ForeignSource:
    """Return the kernel of a Python file; raises as `read_foreign`.

    Args:
        text: What the file holds.
        name: What the file is called in an error.
        takes_model: Whether a class `Model` is a kernel where nothing else is, as in METR's set.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _invalid(name, f"no Python that can be read: {error}") from error
    classes = {n.name for n in tree.body if isinstance(n, ast.ClassDef)}
    bound = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            bound |= {t.id for t in node.targets if isinstance(t, ast.Name)}
    if _MODEL in classes | bound:
        form, entry = ForeignForm.MODEL_NEW, _MODEL
    elif _FUNCTION in bound:
        form, entry = ForeignForm.CUSTOM_KERNEL, _FUNCTION
    elif takes_model and _REFERENCE_MODEL in classes | bound:
        form, entry = ForeignForm.MODEL_NEW, _REFERENCE_MODEL
    else:
        raise _invalid(name, f"neither a class {_MODEL} nor a function {_FUNCTION}")
    file = ForeignFile(path="kernel.py", text=text)
    return ForeignSource(form=form, entry_file=file.path, entry_name=entry, files=(file,))


def solution_of(text: str, name: str) -> ForeignSource:
    """Return the kernel of a solution in JSON; raises as `read_foreign`."""
    try:
        solution = parse_json(text.encode(), most_values=1 << 16)
    except ValueError as error:
        raise _invalid(name, f"no JSON: {error}") from error
    spec = _object(name, solution, "spec")
    sources = solution.get("sources")
    if not isinstance(sources, list) or not 0 < len(sources) <= MOST_FILES:
        raise _invalid(name, f"sources: expected 1 to {MOST_FILES} files, got {shown(sources)}")
    files = tuple(
        ForeignFile(path=_text(name, each, "path"), text=_text(name, each, "content"))
        for each in sources
    )
    entry_file, colons, entry = _text(name, spec, "entry_point").partition("::")
    if not colons:
        raise _invalid(name, "entry_point: expected FILE::FUNCTION")
    is_python = entry_file.endswith(".py")
    # The two suites have different defaults, told apart by `language` and `languages`.
    default = "torch" if is_python or "languages" in spec else "tvm-ffi"
    if (binding := spec.get("binding") or default) != "torch" and not is_python:
        raise _invalid(name, f"binding {shown(binding)}: only torch's own can be built")
    into_outputs = spec.get("destination_passing_style", True)
    options = spec.get("compile_options") or {}
    return ForeignSource(
        form=ForeignForm.FUNCTION_INTO_OUTPUTS if into_outputs else ForeignForm.FUNCTION,
        entry_file=entry_file,
        entry_name=entry,
        files=files,
        compiler_flags=_flags(name, options, "cflags"),
        cuda_flags=_flags(name, options, "cuda_cflags"),
    )


def _object(name: str, value: Any, key: str) -> Mapping[str, Any]:
    found = value.get(key) if isinstance(value, dict) else None
    if not isinstance(found, dict):
        raise _invalid(name, f"{key}: expected an object, got {shown(found)}")
    return found


def _text(name: str, value: Any, key: str) -> str:
    found = value.get(key) if isinstance(value, dict) else None
    if not isinstance(found, str):
        raise _invalid(name, f"{key}: expected a text, got {shown(found)}")
    return found


def _flags(name: str, options: Any, key: str) -> tuple[str, ...]:
    flags = options.get(key) or [] if isinstance(options, dict) else None
    if not isinstance(flags, list) or not all(isinstance(flag, str) for flag in flags):
        raise _invalid(name, f"compile_options.{key}: expected texts, got {shown(flags)}")
    return tuple(flags)


def _invalid(name: str, problem: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"{name}: {problem}", file=name)
