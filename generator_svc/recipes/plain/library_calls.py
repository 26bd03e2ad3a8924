"""Operators that the library computes: which become calls, and whether kernels are left."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from generator_svc.recipes.plain.program import (
    SCRATCH,
    LibraryStep,
    LibraryValue,
    Program,
    Step,
)
from generator_svc.recipes.plain.tensors import (
    NUMBER,
    TRUTH,
    MappedTensor,
    ReducedTensor,
    ScannedTensor,
    StoredTensor,
    Tensor,
    ViewedTensor,
)
from kernel_foundry.plan.errors import PlanError, bind_error
from kernel_foundry.plan.library import LIBRARY_OPS, check_call
from kernel_foundry.plan.values import PlanTensor

Arguments = tuple[Sequence[Any], Mapping[str, Any]]
"""Positional and named."""

_FLOATS: Final = ("float32", "float16", "bfloat16")


def called(
    program: Program,
    name: str,
    dtype: str,
    arguments: Arguments,
    allowed: Collection[str],
    operator: Callable[..., Any],
) -> StoredTensor | None:
    """Return the result of an operator by a library call, or None where it needs a kernel.

    Args:
        program: Takes the call.
        name: Of the operator in PyTorch.
        dtype: Of the result, and so of all operands.
        arguments: Of the operator.
        allowed: Names of the calls that the task allows.
        operator: Writes it as a kernel; here it tells the result's sizes.
    """
    name, (positional, named) = _as_linear(name, arguments, allowed)
    if name not in allowed or name not in LIBRARY_OPS or dtype not in _FLOATS:
        return None
    tensors: dict[str, Tensor] = {}
    places = range(len(program.one.values))
    try:
        first, *_ = [
            check_call(
                name,
                tuple(_plan_value(value, dtype, place, tensors) for value in positional),
                {key: _plan_value(value, dtype, place, tensors) for key, value in named.items()},
                allowed,
            )
            for place in places
        ]
    except PlanError:  # a form that the library or the plan does not have
        return None
    # The program of this one result is thrown away: only its sizes are asked for.
    sizes = operator(Program(len(places), is_fused=True), *arguments[0], **arguments[1]).shape
    defaults = dict(LIBRARY_OPS[name].optional)
    given: dict[str, LibraryValue] = {}
    for key, value in first.given:
        if isinstance(value, PlanTensor):
            given[key] = program.operand(tensors[value.name], value.dtype)
        elif key not in defaults or value != defaults[key]:
            given[key] = value  # type: ignore[assignment]  # what _plan_value made
    return program.call(name, given, sizes, dtype)


def calls_with_kernels(steps: Sequence[Step]) -> bool:
    """Return whether steps have library calls, and kernels whose work reaches every output."""
    return any(isinstance(step, LibraryStep) for step in steps) and _kernels_matter(steps)


def _kernels_matter(steps: Sequence[Step]) -> bool:
    """Return whether every output depends on what a kernel computes, not only moves."""
    own: set[Tensor] = set()
    is_own = True
    for step in steps:
        if isinstance(step, LibraryStep):
            found = any(tensor in own for tensor in step.tensors)
            is_output = bool(step.output)
        else:
            found = _computes(step.root, own)
            is_output = not step.target.name.startswith(SCRATCH)
        if found:
            own.add(step.target)
        is_own = is_own and (found or not is_output)
    return is_own


def _as_linear(name: str, arguments: Arguments, allowed: Collection[str]) -> tuple[str, Arguments]:
    """Return the product with a transposed matrix as a linear layer: nothing is transposed."""
    if name in ("matmul", "mm") and "linear" in allowed and len(arguments[0]) == 2:
        left, right = arguments[0]
        if isinstance(right, ViewedTensor) and right.order == (1, 0):
            return "linear", ((left, right.of), {})
    return name, arguments


def _plan_value(value: Any, dtype: str, place: int, tensors: dict[str, Tensor]) -> Any:
    """Return an argument as a plan has it in the workload at `place`.

    Raises:
        PlanError: there is no such value in plans.
    """
    if isinstance(value, Tensor) and value.kind in (NUMBER, TRUTH):
        name = str(id(value))
        tensors[name] = value
        shape = tuple(size.values[place] for size in value.shape)
        found = "bool" if value.kind == TRUTH else dtype
        return PlanTensor(kind="scratch", name=name, dtype=found, shape=shape)
    if isinstance(value, list):  # an empty one is PyTorch's for "as the window is"
        return tuple(_plan_value(item, dtype, place, tensors) for item in value) or None
    if value is None or isinstance(value, int | float | str):
        return value
    raise bind_error("a size that differs between workloads")


def _computes(tensor: Tensor, own: Collection[Tensor]) -> bool:
    if tensor in own or isinstance(tensor, MappedTensor | ReducedTensor | ScannedTensor):
        return True
    return any(_computes(operand, own) for operand in tensor.operands)
