"""The name table of docs/design.md §4: everything of a reference that a launch plan may name.

Outputs keep their names `out` or `out0`…; then come forward's arguments, parameters, buffers and
scalar attributes, and a later name that is taken gets a suffix.
"""

import keyword
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import torch
from torch import nn

from evaluator_svc.judge.reference.arguments import Arguments
from kernel_foundry.domain.admission import NamedScalar, NamedTensor, TensorRole
from kernel_foundry.errors import TaskInvalidError

_DTYPES: Final = frozenset(
    {
        "float32",
        "float64",
        "float16",
        "bfloat16",
        "float8_e4m3fn",
        "float8_e5m2",
        "int32",
        "int64",
        "int16",
        "int8",
        "uint8",
        "bool",
    }
)
_MAX_TEXT: Final = 64
"""Longest string attribute that is a constant worth naming."""


def named_tensors(
    model: nn.Module, arguments: Arguments, outputs: Sequence[torch.Tensor]
) -> tuple[NamedTensor, ...]:
    """Return the tensors in order: inputs, parameters, buffers, outputs.

    Raises:
        TaskInvalidError: a tensor has a type that no kernel can be given.
    """
    taken = set(output_names(len(outputs)))
    tensors = [
        _tensor(_free(name, taken), TensorRole.INPUT, tensor)
        for name, tensor in zip(arguments.names, arguments.tensors, strict=True)
    ]
    for role, items in (
        (TensorRole.PARAMETER, model.named_parameters()),
        (TensorRole.BUFFER, model.named_buffers()),
    ):
        tensors += [_tensor(_free(path, taken), role, value, path) for path, value in items]
    tensors += [
        _tensor(name, TensorRole.OUTPUT, tensor)
        for name, tensor in zip(output_names(len(outputs)), outputs, strict=True)
    ]
    return tuple(tensors)


def named_scalars(
    model: nn.Module, arguments: Arguments, tensors: Sequence[NamedTensor]
) -> tuple[NamedScalar, ...]:
    """Return constant arguments of forward, then public scalar attributes by dotted path."""
    taken = {tensor.name for tensor in tensors}
    scalars = []
    for path, value in (*arguments.constants, *_attributes(model)):
        literal = _literal(value)
        if literal is not None:
            scalars.append(NamedScalar(name=_free(path, taken), literal=literal))
    return tuple(scalars)


def output_names(count: int) -> tuple[str, ...]:
    """Return `out`, or `out0`, `out1`, … when there are several."""
    return ("out",) if count == 1 else tuple(f"out{i}" for i in range(count))


def dtype_name(dtype: torch.dtype) -> str:
    """Return a dtype as torch spells it, without the prefix."""
    return str(dtype).removeprefix("torch.")


def _attributes(model: nn.Module) -> Iterator[tuple[str, Any]]:
    for prefix, module in model.named_modules():
        for name, value in vars(module).items():
            # Every module has `training`; the task says which mode it is.
            if not name.startswith("_") and name != "training":
                yield f"{prefix}.{name}" if prefix else name, value


def _literal(value: Any) -> str | None:
    if isinstance(value, bool | int):
        return repr(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else None
    if isinstance(value, str):
        return repr(value) if len(value) <= _MAX_TEXT else None
    if isinstance(value, tuple) and value and all(type(item) in (int, float) for item in value):
        return repr(tuple(value))
    return None


def _tensor(name: str, role: TensorRole, tensor: torch.Tensor, path: str = "") -> NamedTensor:
    dtype = dtype_name(tensor.dtype)
    if dtype not in _DTYPES or tensor.layout is not torch.strided:
        raise TaskInvalidError(
            f"tensor {path or name!r} is {tensor.layout} of {dtype}; kernels take dense tensors"
            f" of {', '.join(sorted(_DTYPES))}"
        )
    return NamedTensor(name=name, role=role, dtype=dtype, shape=tuple(tensor.shape), path=path)


def _free(path: str, taken: set[str]) -> str:
    """Return the identifier for a dotted path, made unique, and take it."""
    base = re.sub(r"\W", "_", path)
    if not base.isidentifier():
        base = f"_{base}"
    if keyword.iskeyword(base):
        base = f"{base}_"
    name, number = base, 2
    while name in taken:
        name, number = f"{base}_{number}", number + 1
    taken.add(name)
    return name
