"""Task files: a KernelBench-format Python file and its optional sidecar, read into a `Task`.

`<name>.py` holds the reference, `<name>.task.yaml` beside it the workloads and the rest. The Python
file is parsed, never executed.
"""

import ast
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

from kernel_foundry.closest_name import did_you_mean
from kernel_foundry.domain.name import check_name
from kernel_foundry.domain.task import (
    CHECK_ALONE,
    LONGEST_SCALAR,
    WIDER_THAN_TASK,
    Precision,
    Scalar,
    Size,
    Task,
    Tolerance,
    Workload,
)
from kernel_foundry.domain.task_limits import (
    LARGEST_SIZE,
    LARGEST_WEIGHT,
    LEAST_MATCHED,
    MOST_BITS,
    MOST_WORKLOADS,
)
from kernel_foundry.errors import InvalidArgumentError, TaskInvalidError
from kernel_foundry.plain_yaml import PlainYamlError, read_yaml
from kernel_foundry.plan import LIBRARY_OPS, NO_LIBRARY
from kernel_foundry.sdk.gradient_source import with_gradient
from kernel_foundry.shown_value import shown
from kernel_foundry.task_source import (
    missing_names,
    parse_reference,
    scalar_constants,
    scalar_fault,
    size_constants,
    unknown_size,
)

_MAX_FILE_BYTES: Final = 1 << 20
_SHOWN: Final = 500
"""Characters of names in the text of an error."""
SIDECAR_KEYS: Final = (
    "workloads",
    "backward",
    "tolerance",
    "precision",
    "tf32",
    "least_bits",
    "constants",
    "training",
    "library_ops",
    "check",
    "compare",
    "instructions",
)
"""The keys of a sidecar; docs/task-file.md explains them."""
WORKLOAD_KEYS: Final = frozenset({"held_out", "tolerance", "weight"})
"""The keys of a workload that are no constants of the task file."""

_T = TypeVar("_T")


class _FieldError(Exception):
    """A value of the sidecar that does not fit; the message lacks the file's name."""


def sidecar_path(path: Path) -> Path:
    """Return the path of the sidecar of the task file `path`."""
    return path.with_name(f"{path.stem}.task.yaml")


def read_task(path: Path, *, admit_degenerate: bool = False) -> Task:
    """Return the task in `path` and its sidecar.

    Args:
        path: The Python file.
        admit_degenerate: Accept the task even if trivial answers pass it; every verdict then has
            trust "degenerate". Suites need that.

    Raises:
        TaskInvalidError: a file is missing or unreadable, the reference is no Python or lacks
            `Model` or `get_inputs`, or the sidecar has an unknown key or a value that does
            not fit. The message names file, key and what is expected.
    """
    reference = _read_text(path)
    try:
        check_name(path.stem, "task name")
    except InvalidArgumentError as error:
        raise TaskInvalidError(f"{error.message}; rename the file", file=str(path)) from error
    tree = parse_reference(reference, file_name=path.name)
    if missing := missing_names(tree):
        raise TaskInvalidError(
            f"{path.name}: no {' and no '.join(missing)}; a task is a Python file with"
            " `class Model(nn.Module)`, `get_inputs()` and `get_init_inputs()`",
            file=str(path),
        )
    sidecar = sidecar_path(path)
    settings = _read_sidecar(sidecar) if sidecar.exists() else {}
    try:
        task = _task(path.stem, reference, tree, settings)
    except _FieldError as error:
        raise TaskInvalidError(f"{sidecar.name}: {error}", file=str(sidecar)) from error
    return replace(task, admit_degenerate=admit_degenerate)


def _read_text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_MAX_FILE_BYTES + 1)  # what has no size may have no end
    except UnicodeDecodeError as error:
        raise TaskInvalidError(
            f"{path}: not UTF-8 text, save it as UTF-8: {error}", file=str(path)
        ) from error
    except OSError as error:
        raise TaskInvalidError(f"{path}: {error.strerror}{_meant(path)}", file=str(path)) from error
    if len(text) > _MAX_FILE_BYTES:
        raise TaskInvalidError(
            f"{path}: larger than {_MAX_FILE_BYTES} bytes, too large for a task file",
            file=str(path),
        )
    return text


def _meant(path: Path) -> str:
    """What to give in place of a path that cannot be read; "" where nobody can tell."""
    if path.is_dir():
        return ": a task is one file, `kfoundry suite run` takes folders"
    program = path.with_name(f"{path.name}.py")
    return f": did you mean {program}?" if not path.suffix and program.is_file() else ""


def _read_sidecar(path: Path) -> Mapping[str, Any]:
    if not path.is_file():  # a pipe would wait for whoever writes to it
        raise TaskInvalidError(f"{path.name}: no plain file", file=str(path))
    try:
        content = read_yaml(_read_text(path))
    except PlainYamlError as error:
        raise TaskInvalidError(f"{path.name}: not valid YAML: {error}", file=str(path)) from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise TaskInvalidError(
            f"{path.name}: expected keys with values, such as `tolerance: auto`", file=str(path)
        )
    for key in content:
        if key not in SIDECAR_KEYS:
            meant = did_you_mean(key, SIDECAR_KEYS) if isinstance(key, str) else ""
            raise TaskInvalidError(
                f"{path.name}: unknown key {shown(key)}{meant}"
                f"; known are {', '.join(SIDECAR_KEYS)}",
                file=str(path),
                key=shown(key),
            )
    return content


def _task(name: str, reference: str, tree: ast.Module, settings: Mapping[str, Any]) -> Task:
    def setting(key: str, read: Callable[[Any], _T], default: _T) -> _T:
        return read(settings[key]) if settings.get(key) is not None else default

    known = _Constants(tree)
    whole: tuple[Workload, ...] = (Workload(name="default"),)
    precision = setting("precision", _precision, None)
    tf32 = setting("tf32", lambda value: _boolean("tf32", value), default=False)
    if tf32 and precision not in (None, Precision.FP32):
        raise _FieldError(f"tf32: needs precision fp32, but the precision is {precision}")
    workloads = setting("workloads", lambda value: _workloads(value, known), whole)
    tolerance = setting("tolerance", _tolerance, None)
    least_bits = setting("least_bits", _least_bits, 0.0)
    check = setting("check", lambda value: _check(value, tree), "")
    compare = setting("compare", lambda value: _boolean("compare", value), default=True)
    if not compare and (not check or tolerance or least_bits):
        raise _FieldError(f"compare: {CHECK_ALONE}")
    for workload in workloads:
        if workload.tolerance and not (tolerance and workload.tolerance.is_within(tolerance)):
            raise _FieldError(f"workloads: {shown(workload.name)}: {WIDER_THAN_TASK}")
    wanted = setting("backward", _backward, None)
    if wanted is not None:
        reference = with_gradient(reference, wanted, file_name=f"{name}.py")
    return Task(
        name=name,
        reference=reference,
        workloads=workloads,
        tolerance=tolerance,
        precision=precision,
        tf32=tf32,
        least_bits=least_bits,
        constants=setting("constants", _constants, ()),
        training=setting("training", lambda value: _boolean("training", value), default=True),
        library_ops=setting("library_ops", _library_ops, ()),
        check=check,
        compare=compare,
        instructions=setting("instructions", _instructions, ""),
    )


class _Constants:
    """What a workload may override in a task file."""

    def __init__(self, tree: ast.Module) -> None:
        self.sizes = size_constants(tree)
        self.scalars = scalar_constants(tree)


def _workloads(value: Any, known: _Constants) -> tuple[Workload, ...]:
    if not isinstance(value, list) or not 0 < len(value) <= MOST_WORKLOADS:
        raise _FieldError(
            "workloads: expected a list such as [{batch: 16, dim: 1024}], of at most"
            f" {MOST_WORKLOADS}"
        )
    workloads = tuple(_workload(i, item, known) for i, item in enumerate(value))
    known_names: set[str] = set()
    for workload in workloads:
        if workload.name in known_names:
            raise _FieldError(f"workloads: {shown(workload.name)} is listed twice; remove one")
        known_names.add(workload.name)
    if all(workload.held_out for workload in workloads):
        raise _FieldError(
            "workloads: all are held out; add a timed one ({} has the file's own sizes)"
        )
    return workloads


def _workload(index: int, item: Any, known: _Constants) -> Workload:
    where = f"workloads[{index}]"
    if not isinstance(item, dict):
        raise _FieldError(f"{where}: expected sizes such as {{batch: 16}}, got {shown(item)}")
    # A constant of the file may be called `weight` or `tolerance`, and is meant then.
    settings = WORKLOAD_KEYS - {*known.sizes, *known.scalars}
    held_out = _boolean(f"{where}.held_out", item.get("held_out", False))
    tolerance = item.get("tolerance") if "tolerance" in settings else None
    weight = _weight(where, item.get("weight", 1.0)) if "weight" in settings else 1.0
    if held_out and "weight" in settings & item.keys():
        raise _FieldError(f"{where}.weight: it is held out, so it has no time that could count")
    given = {name: value for name, value in item.items() if name not in settings}
    sizes, scalars = [], []
    for name, value in given.items():
        if name in known.scalars:
            scalars.append(_scalar(where, name, value, known.scalars))
        elif name not in known.sizes:
            raise _FieldError(f"{where}: {unknown_size(name, [*known.sizes, *known.scalars])}")
        elif type(value) is not int or not 0 < value <= LARGEST_SIZE:
            raise _FieldError(f"{where}.{name}: expected a positive integer, got {shown(value)}")
        else:
            sizes.append(Size(name=name, value=value))
    names = given | {scalar.name: scalar.value for scalar in scalars}
    return Workload(
        name=",".join(f"{name}={value}" for name, value in names.items()) or "default",
        sizes=tuple(sizes),
        scalars=tuple(scalars),
        held_out=held_out,
        weight=weight,
        tolerance=None if tolerance is None else _tolerance(tolerance, f"{where}.tolerance"),
    )


def _scalar(where: str, name: str, value: Any, known: Mapping[str, object]) -> Scalar:
    if isinstance(known[name], float) and isinstance(value, str):
        # YAML 1.1 reads 1e-4, which has no point, as a string.
        with contextlib.suppress(ValueError):
            value = float(value)
    if fault := scalar_fault(name, value, known):
        raise _FieldError(f"{where}: {fault}")
    if len(repr(value)) > LONGEST_SCALAR:
        raise _FieldError(f"{where}.{name}: longer than {LONGEST_SCALAR} characters")
    return Scalar(name=name, text=repr(value))


def _weight(where: str, value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 1 / LARGEST_WEIGHT <= value <= LARGEST_WEIGHT:
        raise _FieldError(
            f"{where}.weight: expected a number from {1 / LARGEST_WEIGHT:g} to"
            f" {LARGEST_WEIGHT:g}, got {shown(value)}"
        )
    return float(value)


def _tolerance(value: Any, where: str = "tolerance") -> Tolerance | None:
    if value == "auto":
        return None
    if not isinstance(value, dict) or set(value) - {"matched"} != {"rtol", "atol"}:
        raise _FieldError(f"{where}: expected auto or {{rtol: …, atol: …}}, got {shown(value)}")
    matched = value.get("matched", 1.0)
    is_share = isinstance(matched, int | float) and not isinstance(matched, bool)
    if not is_share or not LEAST_MATCHED <= matched <= 1:
        raise _FieldError(
            f"{where}.matched: expected a share of the elements from {LEAST_MATCHED:g} to 1, got"
            f" {shown(matched)}"
        )
    return Tolerance(
        rtol=_bound(f"{where}.rtol", value["rtol"]),
        atol=_bound(f"{where}.atol", value["atol"]),
        matched=float(matched),
    )


def _bound(where: str, value: Any) -> float:
    # YAML 1.1 reads 1e-4, which has no point, as a string.
    try:
        number = float("nan") if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = float("nan")
    if not 0.0 <= number < 1e30:
        raise _FieldError(f"{where}: expected a number that is not negative, got {shown(value)}")
    return number


def _least_bits(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value <= MOST_BITS:
        raise _FieldError(f"least_bits: expected bits from 1 to {MOST_BITS}, got {shown(value)}")
    return float(value)


def _precision(value: Any) -> Precision:
    try:
        return Precision(value)
    except ValueError:
        choices = ", ".join(precision.value for precision in Precision)
        raise _FieldError(f"precision: expected one of {choices}, got {shown(value)}") from None


def _boolean(where: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _FieldError(f"{where}: expected true or false, got {shown(value)}")
    return value


def _library_ops(value: Any) -> tuple[str, ...]:
    if value == "auto":
        return ()
    if value in ("none", []):
        return (NO_LIBRARY,)
    if not isinstance(value, list):
        raise _FieldError(
            f"library_ops: expected auto, none or a list such as [linear], got {shown(value)}"
        )
    for name in value:
        if not isinstance(name, str) or name not in LIBRARY_OPS:
            raise _FieldError(
                f"library_ops: unknown {shown(name)}; known are {', '.join(LIBRARY_OPS)}"
            )
    return tuple(value)


def _constants(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise _FieldError(
            "constants: expected a list of inputs, parameters or buffers such as [mix], got"
            f" {shown(value)}"
        )
    return tuple(dict.fromkeys(value))


def _backward(value: Any) -> tuple[str, ...] | None:
    """Return what gradients are wanted of, empty for all; None: of nothing."""
    if isinstance(value, bool):
        return () if value else None
    if not isinstance(value, list) or not value or not all(isinstance(v, str) for v in value):
        raise _FieldError(
            "backward: expected true, false or a list of inputs and parameters such as [x], got"
            f" {shown(value)}"
        )
    return tuple(dict.fromkeys(value))


def _check(value: Any, tree: ast.Module) -> str:
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    if value not in functions:
        raise _FieldError(
            f"check: expected a function of the task file, got {shown(value)}; the file has"
            f" {', '.join(functions)[:_SHOWN]}"
        )
    return str(value)


def _instructions(value: Any) -> str:
    if not isinstance(value, str):
        raise _FieldError(f"instructions: expected text, got {shown(value)}")
    return value
