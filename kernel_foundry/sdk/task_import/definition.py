"""A definition of FlashInfer Trace or SOL-ExecBench: its axes as expressions, its tensors as calls.

Workloads and the task file's text are in `flashinfer.py`.
"""

import ast
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kernel_foundry.sdk.task_import.entry import NotRepresentableError
from kernel_foundry.sdk.task_import.source_text import (
    bound_names,
    check_identifier,
    free_names,
    function_of,
    parsed,
)
from kernel_foundry.shown_value import shown

_MOST_NAMES: Final = 64
_LONGEST_EXPRESSION: Final = 300
_LARGEST: Final = 1 << 40
_WHOLE_NUMBER: Final = re.compile(r"[0-9]{1,13}")
_FLOATS: Final = ("float64", "float32", "float16", "bfloat16")
_NARROW_FLOATS: Final = ("float8_e4m3fn", "float8_e5m2")
_INTEGERS: Final = {"int8": 128, "int16": 1024, "int32": 1024, "int64": 1024, "bool": 2}
"""Their random values lie below this and not below its negative; those of bool are 0 and 1."""
_OPERATORS: Final = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "//",
    ast.Mod: "%",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionTensor:
    """An input of a definition."""

    shape: tuple[str, ...] | None
    """Python expressions; None for a scalar."""
    dtype: str

    def check_random(self) -> None:
        """Refuse what has no random values.

        Raises:
            NotRepresentableError: a scalar, or a format that tasks do not have.
        """
        if self.shape is None:
            raise NotRepresentableError("a scalar without a value")
        if self.dtype not in (*_FLOATS, *_NARROW_FLOATS, *_INTEGERS):
            raise NotRepresentableError(f"dtype {shown(self.dtype)}")

    def random(self) -> str:
        """Return a call that makes random values, by the rules of the suite's own harness."""
        shape = f"({''.join(f'{size}, ' for size in self.shape or ())})".replace(", )", ",)")
        if self.dtype in _FLOATS:
            return f"torch.randn({shape}, dtype=torch.{self.dtype})"
        if self.dtype in _NARROW_FLOATS:
            return f"torch.randn({shape}).clamp(-2.0, 2.0).to(torch.{self.dtype})"
        high = _INTEGERS[self.dtype]
        low = 0 if self.dtype == "bool" else -high
        return f"torch.randint({low}, {high}, {shape}, dtype=torch.{self.dtype})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What a task file needs of a definition."""

    reference: str
    sizes: Mapping[str, str]
    """Name in the task file of each axis that workloads set."""
    axes: Mapping[str, str]
    """Every axis as a Python expression of sizes."""
    inputs: Mapping[str, DefinitionTensor]
    outputs: tuple[str, ...]
    entry_point: str
    """Function that makes custom inputs; empty if there is none."""


def read_definition(content: Any) -> Definition:
    """Return the definition in a value of JSON.

    Raises:
        NotRepresentableError: a part is missing or does not fit; names it.
    """
    if not isinstance(content, dict) or not isinstance(content.get("reference"), str):
        raise NotRepresentableError("no object with a text `reference`")
    tree = parsed(content["reference"], "reference")
    if function_of(tree, "run") is None:
        raise NotRepresentableError("its reference has no function `run`")
    bound = bound_names(tree)
    if "Model" in bound:
        raise NotRepresentableError("its reference has a Model of its own")
    if "get_inputs" in {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}:
        raise NotRepresentableError("its reference uses a get_inputs of its own")
    entry_point = content.get("custom_inputs_entrypoint") or ""
    if entry_point and function_of(tree, check_identifier(entry_point, "entry point")) is None:
        raise NotRepresentableError(f"its reference has no function {entry_point}")
    listed = _named(content, "axes")
    variable = [name for name, axis in listed.items() if axis.get("type") == "var"]
    inputs = _named(content, "inputs")
    sizes = free_names(variable, bound | {"made", *(f"input_{name}" for name in inputs)})
    axes = _axes(listed, sizes)
    return Definition(
        reference=content["reference"],
        sizes=sizes,
        axes=axes,
        inputs={name: _tensor(name, spec, axes) for name, spec in inputs.items()},
        outputs=tuple(_named(content, "outputs")),
        entry_point=entry_point,
    )


def _named(content: Mapping[str, Any], key: str) -> dict[str, dict[str, Any]]:
    value = content.get(key) or {}
    if not isinstance(value, dict) or len(value) > _MOST_NAMES:
        raise NotRepresentableError(f"{key}: expected at most {_MOST_NAMES} names with values")
    for name, spec in value.items():
        check_identifier(name, f"{key}:")
        if not isinstance(spec, dict):
            raise NotRepresentableError(f"{key}.{name}: expected an object, got {shown(spec)}")
    if not value and key != "axes":
        raise NotRepresentableError(f"no {key}")
    return value


def _axes(listed: Mapping[str, Mapping[str, Any]], sizes: Mapping[str, str]) -> dict[str, str]:
    axes: dict[str, str] = dict(sizes)
    waiting: dict[str, ast.expr] = {}
    for name, axis in listed.items():
        kind, value = axis.get("type"), axis.get("value")
        if kind == "const":
            if type(value) is not int or not 0 <= value <= _LARGEST:
                raise NotRepresentableError(f"axes.{name}: no size: {shown(value)}")
            axes[name] = str(value)
        elif kind == "expr":
            waiting[name] = _expression(name, axis.get("expression"))
        elif kind != "var":
            raise NotRepresentableError(f"axes.{name}: type {shown(kind)}")
    while waiting:
        ready = [name for name, tree in waiting.items() if _names(tree) <= set(axes)]
        if not ready:
            raise NotRepresentableError(f"axes.{next(iter(waiting))}: names no axis, or itself")
        for name in ready:
            axes[name] = _written(waiting.pop(name), axes)
            if len(axes[name]) > _LONGEST_EXPRESSION:
                raise NotRepresentableError(f"axes.{name}: a long expression")
    return axes


def _expression(name: str, text: object) -> ast.expr:
    if not isinstance(text, str) or len(text) > _LONGEST_EXPRESSION:
        raise NotRepresentableError(f"axes.{name}: no short expression: {shown(text)}")
    body = parsed(text.strip(), f"axes.{name}").body
    if len(body) != 1 or not isinstance(body[0], ast.Expr):
        raise NotRepresentableError(f"axes.{name}: no expression: {shown(text)}")
    return body[0].value


def _names(tree: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _written(node: ast.expr, axes: Mapping[str, str]) -> str:
    """An expression of axes as one of sizes, in brackets; its length bounds how deep it is."""
    if isinstance(node, ast.Name):
        return axes[node.id]
    if isinstance(node, ast.Constant) and type(node.value) is int and node.value <= _LARGEST:
        return str(node.value)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _written(node.left, axes), _written(node.right, axes)
        return f"({left} {_OPERATORS[type(node.op)]} {right})"
    raise NotRepresentableError(f"an axis with {type(node).__name__} in its expression")


def _tensor(name: str, spec: Mapping[str, Any], axes: Mapping[str, str]) -> DefinitionTensor:
    listed, dtype = spec.get("shape"), spec.get("dtype")
    if listed is None:
        return DefinitionTensor(shape=None, dtype=str(dtype)[:100])
    shape = [_size(each, axes) for each in listed] if isinstance(listed, list) else [None]
    sizes = tuple(size for size in shape if size is not None)
    if len(sizes) < len(shape):
        what = "a shape of other than axes and whole numbers"
        raise NotRepresentableError(f"inputs.{name}: {what}: {shown(listed)}")
    if math.prod(int(size) for size in sizes if size.isdigit()) > _LARGEST:
        raise NotRepresentableError(f"inputs.{name}: more than 2^40 elements")
    return DefinitionTensor(shape=sizes, dtype=str(dtype)[:100])


def _size(stated: object, axes: Mapping[str, str]) -> str | None:
    """An axis, or a whole number in digits, as an expression of sizes; None for anything else."""
    if not isinstance(stated, str):
        return None
    return str(int(stated)) if _WHOLE_NUMBER.fullmatch(stated) else axes.get(stated)
