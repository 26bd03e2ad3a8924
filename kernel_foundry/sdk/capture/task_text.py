"""A task file and its sidecar, from the calls of modules that are alike.

Dimensions of inputs become sizes at the head of the file: each captured shape is a workload.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import nn

from kernel_foundry.plain_yaml import write_yaml
from kernel_foundry.sdk.capture.python_text import NotWritableError, PythonText
from kernel_foundry.sdk.capture.recorder import Argument, RecordedCalls

_MOST_WORKLOADS: Final = 16
_PRECISIONS: Final = {torch.float16: "fp16", torch.bfloat16: "bf16"}
_PLAIN: Final = (bool, int, float, str, tuple, type(None), torch.dtype)


@dataclass(slots=True)
class TaskText:
    """A task file without docstring, and its sidecar."""

    reference: str
    sidecar: str
    workloads: list[str]
    """The name of each shape's workload; "" for those that were left out."""
    notes: list[str] = field(default_factory=list)


def task_text(shapes: Sequence[RecordedCalls]) -> TaskText:
    """Return the task of calls of like modules; the first shape is that of the file itself.

    Args:
        shapes: Calls with inputs of one kind each; only their shapes and strides differ.

    Raises:
        NotWritableError: there can be none, and why.
    """
    first = shapes[0]
    if first.reason:
        raise NotWritableError(first.reason)
    module = first.module
    python = PythonText()
    python.define_model(type(module))
    made_with = python.arguments_of(module)
    names, sizes = _sizes(shapes, python)
    if any(0 in tensor.shape for shape in shapes for tensor in _inputs(shape)):
        raise NotWritableError("an input is empty")
    head = "".join(f"{name} = {values[0]}\n" for name, values in sizes.items())
    inputs = _input_list(first, names, python)
    reference = (
        f"{python.imports()}\n\n{head}\n\n{python.definitions()}\n\n"
        f"def get_inputs():\n    return [{inputs}]\n\n\n"
        f"def get_init_inputs():\n    return [{made_with}]\n"
    )
    settings: dict[str, Any] = {}
    workloads = [
        {name: values[index] for name, values in sizes.items()} for index in range(len(shapes))
    ]
    kept = [w for i, w in enumerate(workloads) if w not in workloads[:i]][:_MOST_WORKLOADS]
    settings["workloads"] = [
        {**workload, **_weight(workload, workloads, shapes)} for workload in kept
    ]
    precision = _precision(first)
    if precision is not None:
        settings["precision"] = _PRECISIONS[precision]
    if not module.training:
        settings["training"] = False
    _check_same(module, reference, precision)
    return TaskText(
        reference=reference,
        sidecar=write_yaml(settings),
        workloads=[
            ",".join(f"{k}={v}" for k, v in w.items()) or "default" if w in kept else ""
            for w in workloads
        ],
        notes=_notes(shapes),
    )


def _weight(
    kept: dict[str, int], workloads: Sequence[dict[str, int]], shapes: Sequence[RecordedCalls]
) -> dict[str, float]:
    """The share of the program's time in the module that calls of a workload take, in per cent."""
    total_ns = sum(_total_ns(shape) for shape in shapes)
    own_ns = sum(_total_ns(s) for s, w in zip(shapes, workloads, strict=True) if w == kept)
    is_only = len(workloads) == 1 or not total_ns
    return {} if is_only else {"weight": max(round(100 * own_ns / total_ns, 1), 0.1)}


def _total_ns(shape: RecordedCalls) -> float:
    return len(shape.times_ns) * shape.call_ns


def _inputs(shape: RecordedCalls) -> list[torch.Tensor]:
    return [tensor for argument in shape.arguments for tensor in argument.tensors]


def _sizes(
    shapes: Sequence[RecordedCalls], python: PythonText
) -> tuple[list[list[str]], dict[str, list[int]]]:
    """Expressions for the dimensions of each input, and each size's value in each shape.

    A dimension that has the same values as one of an earlier input has the same size.
    """
    sizes: dict[str, list[int]] = {}
    rows: list[list[str]] = []
    labels = _labels(shapes[0].arguments)
    for index, label in enumerate(labels):
        tensors = [_inputs(shape)[index] for shape in shapes]
        row: list[str] = []
        rank = tensors[0].dim()
        earlier = [(name, other) for name, other in sizes.items() if name not in row]
        for dimension in range(rank):
            values = [tensor.shape[dimension] for tensor in tensors]
            if all(value == 1 for value in values):
                row.append("1")
                continue
            like = [name for name, other in earlier if other == values and name not in row]
            # A dimension as far from the end comes first: that is what broadcasts.
            aligned = [n for r in rows for n in r[len(r) - rank + dimension :][:1] if n in like]
            name = (aligned or like or [python.free(f"{label}_{dimension}")])[0]
            sizes[name] = values
            row.append(name)
        rows.append(row)
    return rows, sizes


def _labels(arguments: Sequence[Argument]) -> list[str]:
    found: list[str] = []
    for argument in arguments:
        many = argument.is_list
        found += [
            f"{argument.name}{i}" if many else argument.name for i in range(len(argument.tensors))
        ]
    return found


def _input_list(shape: RecordedCalls, rows: list[list[str]], python: PythonText) -> str:
    texts: list[str] = []
    place = 0
    for argument in shape.arguments:
        made = []
        for tensor in argument.tensors:
            made.append(_draw(tensor, rows[place], shape.ranges[place]))
            place += 1
        if argument.is_list:
            texts.append(f"[{', '.join(made)}]")
        else:
            texts.append(made[0] if made else python.expression(argument.constant, argument.name))
    return ", ".join(texts)


def _draw(tensor: torch.Tensor, row: list[str], value_range: tuple[float, float]) -> str:
    least, largest = value_range
    shape = f"({', '.join(row)}{',' if len(row) == 1 else ''})"
    dtype = tensor.dtype
    if dtype is torch.bool:
        return f"torch.rand({shape}) < 0.5"
    if not (dtype.is_floating_point or dtype.is_complex):
        return f"torch.randint({int(least)}, {int(largest) + 1}, {shape}, dtype={dtype})"
    is_usual = dtype is torch.float32 or dtype in _PRECISIONS
    given = "" if is_usual else f", dtype={dtype}"
    if least >= 0 and largest > 0 and not dtype.is_complex:
        return f"torch.rand({shape}{given})" + ("" if largest == 1 else f" * {largest:.6g}")
    return f"torch.randn({shape}{given})"


def _precision(shape: RecordedCalls) -> torch.dtype | None:
    """The 16-bit format of all inputs and weights; None where they are as torch makes them.

    Raises:
        NotWritableError: formats are mixed in a way that no task has.
    """
    weights = [*shape.module.parameters(), *shape.module.buffers()]
    floats = {t.dtype for t in [*weights, *_inputs(shape)] if t.is_floating_point()}
    narrow = floats & _PRECISIONS.keys()
    if not narrow:
        return None
    if len(floats) > 1:
        listed = ", ".join(sorted(map(str, floats)))
        raise NotWritableError(f"inputs and weights have several formats: {listed}")
    return narrow.pop()


def _check_same(module: nn.Module, reference: str, precision: torch.dtype | None) -> None:
    """Make the module of a text and compare it with the captured one.

    Raises:
        NotWritableError: they differ, or it cannot be made.
    """
    scope: dict[str, Any] = {"__name__": "captured_task"}
    state = torch.random.get_rng_state()
    try:
        exec(compile(reference, "<captured task>", "exec"), scope)
        with torch.device("cpu"):
            made: nn.Module = scope["Model"](*scope["get_init_inputs"]()).to(dtype=precision)
    except Exception as error:  # the user's own code may raise anything
        raise NotWritableError(
            f"its text does not run by itself: {type(error).__name__}: {error}"
        ) from error
    finally:
        torch.random.set_rng_state(state)
    for what, described in (("weights", _weights), ("attributes", _attributes)):
        ours, theirs = described(made), described(module)
        if ours != theirs:
            differing = sorted(
                k for k in ours.keys() | theirs.keys() if ours.get(k) != theirs.get(k)
            )
            raise NotWritableError(
                f"it was changed after it was made: {what} {', '.join(differing[:5])} differ"
            )


def _weights(module: nn.Module) -> dict[str, Any]:
    tensors = [*module.named_parameters(), *module.named_buffers()]
    return {name: (tuple(t.shape), t.dtype) for name, t in tensors}


def _attributes(module: nn.Module) -> dict[str, Any]:
    return {
        f"{path}.{name}" if path else name: repr(value)
        for path, part in module.named_modules()
        for name, value in vars(part).items()
        if isinstance(value, _PLAIN) and name != "training"
    }


def _notes(shapes: Sequence[RecordedCalls]) -> list[str]:
    notes = []
    strided = [
        f"{label} with strides {tuple(tensor.stride())}"
        for shape in shapes
        for label, tensor in zip(_labels(shape.arguments), _inputs(shape), strict=True)
        if not tensor.is_contiguous()
    ]
    if strided:
        listed = "; ".join(dict.fromkeys(strided[:4]))
        notes.append(
            f"the program passes tensors that are not contiguous ({listed}): the task's are, and an"
            " exported kernel runs on contiguous ones alone"
        )
    left_out = len({tuple(tuple(t.shape) for t in _inputs(s)) for s in shapes}) - _MOST_WORKLOADS
    if left_out > 0:
        notes.append(f"{left_out} shapes that take the least time are no workloads")
    if type(shapes[0].module).__module__.partition(".")[0] not in ("torch", "__main__"):
        notes.append(f"the class is one of {type(shapes[0].module).__module__}")
    return notes


def weight_bytes(shape: RecordedCalls) -> int:
    """Return how many bytes of weights a call reads at least.

    Of a table that rows are looked up in, as many as the results have.
    """
    total = 0
    for part in shape.module.modules():
        own = sum(t.nbytes for t in (*part.parameters(recurse=False), *part.buffers(recurse=False)))
        if isinstance(part, nn.Embedding | nn.EmbeddingBag):
            rows = sum(math.prod(t.shape) for t in _inputs(shape) if not t.is_floating_point())
            own = min(own, rows * part.embedding_dim * part.weight.itemsize)
        total += own
    return total
