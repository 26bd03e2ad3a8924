"""Checks the arguments of a launch against the kernel's declared parameters.

Errors carry no line; the interpreter adds it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kernel_foundry.plan.c_types import (
    UNKNOWN,
    VOID,
    float_fits,
    integer_range,
    is_number_type,
)
from kernel_foundry.plan.dtypes import DTYPE_BYTES
from kernel_foundry.plan.errors import bind_error, short
from kernel_foundry.plan.sequence import (
    Argument,
    BufferArgument,
    LocalArgument,
    ScalarArgument,
)
from kernel_foundry.plan.signature import KernelParameter, KernelSignature
from kernel_foundry.plan.values import LocalMemory, PlanTensor, Value, describe

_BYTES: Final = ("uint8", "int8")
_HELD_IN_BYTES: Final = ("bool", "float8_e4m3fn", "float8_e5m2")
"""Types that a kernel may take as the bytes that they are."""


def match_parameters(
    kernel: KernelSignature, positional: tuple[Value, ...], keywords: Mapping[str, Value]
) -> tuple[tuple[KernelParameter, Value], ...]:
    """Return each parameter with its value, in declared order.

    Raises:
        PlanError: `bind`, for a wrong count or an unknown, doubled or missing name.
    """
    expected = len(kernel.parameters)
    if len(positional) > expected:
        raise bind_error(
            f"{kernel.name} takes {expected} argument(s), not {len(positional) + len(keywords)}: "
            f"{kernel}"
        )
    values = dict(enumerate(positional))
    index_of = {parameter.name: i for i, parameter in enumerate(kernel.parameters)}
    for name, value in keywords.items():
        if name not in index_of:
            raise bind_error(f"{kernel.name} has no parameter {short(name)!r}: {kernel}")
        if index_of[name] in values:
            raise bind_error(f"{kernel.name}: the argument {name!r} is given twice")
        values[index_of[name]] = value
    if len(values) < expected:
        missing = [p.name or "unnamed" for i, p in enumerate(kernel.parameters) if i not in values]
        raise bind_error(
            f"{kernel.name} takes {expected} argument(s), not {len(values)}: missing "
            f"{', '.join(missing)} of {kernel}"
        )
    return tuple((parameter, values[i]) for i, parameter in enumerate(kernel.parameters))


def bind_argument(
    parameter: KernelParameter, value: Value, buffer_index: Callable[[PlanTensor], int]
) -> Argument:
    """Return the argument for one parameter.

    Args:
        parameter: As declared in the device code.
        value: As computed by the plan.
        buffer_index: Registers a tensor and gives its position.

    Raises:
        PlanError: `bind`, when the value is no valid argument for the parameter.
    """
    if parameter.is_local:
        return _local(parameter, value)
    if isinstance(value, LocalMemory):
        raise bind_error(
            f"{_named(parameter)} is not a local accessor: declare it as "
            f"sycl::local_accessor<{value.dtype}, 1>"
        )
    if parameter.is_pointer:
        if not isinstance(value, PlanTensor):
            raise bind_error(f"{_named(parameter)} takes a tensor, not {describe(value)}")
        _check_pointer(parameter, value)
        return BufferArgument(index=buffer_index(value))
    if isinstance(value, PlanTensor):
        raise bind_error(f"{_named(parameter)} takes a number, not {describe(value)}")
    return _scalar(parameter, value)


def _check_pointer(parameter: KernelParameter, tensor: PlanTensor) -> None:
    element = parameter.ctype
    if element in (VOID, UNKNOWN) or element == tensor.dtype:
        return
    if tensor.dtype in _HELD_IN_BYTES and element in _BYTES:
        return
    way = f"a pointer to {tensor.dtype} (or void*) and reinterpret it inside the kernel"
    if tensor.dtype.startswith("float8"):
        name = f"__nv_fp8_{tensor.dtype.removeprefix('float8_').removesuffix('fn')}"
        way = (
            f"a pointer to {name} (CUDA, #include <cuda_fp8.h>), or to uint8_t and decode the bits"
            " in the kernel (SYCL has no such type)"
        )
    raise bind_error(
        f"{_named(parameter)} points to {element}, but {tensor.name} holds {tensor.dtype}: declare "
        f"{way}"
    )


def _local(parameter: KernelParameter, value: Value) -> LocalArgument:
    if not isinstance(value, LocalMemory):
        raise bind_error(f"{_named(parameter)} takes local(n, dtype), not {describe(value)}")
    if parameter.lanes == 0:
        raise bind_error(f"{_named(parameter)}: only one-dimensional local accessors are available")
    if parameter.ctype not in (UNKNOWN, value.dtype):
        raise bind_error(
            f"{_named(parameter)} holds {parameter.ctype}: write local(n, {parameter.ctype}), not "
            f"{value.dtype}"
        )
    if value.count % parameter.lanes:
        raise bind_error(
            f"{_named(parameter)} holds vectors of {parameter.lanes}: local({value.count}, …) is "
            "not a multiple of it"
        )
    return LocalArgument(
        element_bytes=DTYPE_BYTES[value.dtype] * parameter.lanes,
        count=value.count // parameter.lanes,
    )


def _scalar(parameter: KernelParameter, value: Value) -> ScalarArgument:
    ctype = parameter.ctype
    if not isinstance(value, int | float):
        raise bind_error(f"{_named(parameter)} takes a number, not {describe(value)}")
    if not is_number_type(ctype) or parameter.lanes != 1:
        raise bind_error(
            f"{_named(parameter)}: a plan passes numbers of plain types such as int, float, "
            "long long, bool; this type is not known"
        )
    limits = integer_range(ctype)
    if limits is None:
        return ScalarArgument(ctype=ctype, value=_float(parameter, value))
    if isinstance(value, float):
        if not value.is_integer():
            raise bind_error(
                f"{_named(parameter)} takes a whole number, not {value!r}: use // or int(...)"
            )
        value = int(value)
    if not limits[0] <= value <= limits[1]:
        raise bind_error(
            f"{value} does not fit {_named(parameter)}, which holds {limits[0]} to {limits[1]}"
        )
    return ScalarArgument(ctype=ctype, value=bool(value) if ctype == "bool" else int(value))


def _float(parameter: KernelParameter, value: int | float) -> float:
    result = float(value)
    if not float_fits(parameter.ctype, result):
        raise bind_error(f"{value!r} does not fit {_named(parameter)}: it would be infinite")
    return result


def _named(parameter: KernelParameter) -> str:
    return f"the parameter {parameter.declaration!r}"
