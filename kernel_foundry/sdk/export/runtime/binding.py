"""Finds the plan for a call, and binds it once for each kind of call.

A call runs a kernel only where everything is as it was judged; else `NoKernelError` says what is
not, and whoever asked runs the reference.
"""

import base64
import threading
import zlib
from typing import Any, Final

import torch

from kernel_foundry.sdk.export.runtime.bound_call import NAMES, BoundCall
from kernel_foundry.sdk.export.runtime.layouts import Layouts
from kernel_foundry.sdk.export.runtime.opencl import device_of
from kernel_foundry.sdk.export.runtime.plan import (
    Buffer,
    Kernel,
    NoKernelError,
    Recorder,
    Sequence,
)
from kernel_foundry.sdk.export.runtime.reference import (
    Sizes,
    constants_of,
    outputs_of,
    scalars_of,
    sizes_of_call,
    skeleton,
)
from kernel_foundry.sdk.export.runtime.task import (
    INPUTS,
    LANGUAGE,
    OBJECTS,
    OUTPUTS,
    SPECIALISATIONS,
    WORKLOADS,
)

DEVICE: Final = {"sycl": "cpu", "cuda": "cuda"}[LANGUAGE]
"""Type of the devices that kernels run on, as torch calls it."""
_MOST_CALLS: Final = 1024
"""Calls of different shapes that are remembered."""

_layouts: dict[tuple[Any, ...], Layouts] = {}
_calls: dict[tuple[Any, ...], BoundCall | str] = {}
_programs: dict[tuple[int, int], Any] = {}
_binding = threading.RLock()


def bound_call(kind: Sizes, tensors: list[torch.Tensor]) -> BoundCall:
    """Return the call for inputs and weights, in the order of the schema.

    Raises:
        NoKernelError: it has to be the reference's.
    """
    first = tensors[0]
    if first.device.type != DEVICE:
        raise NoKernelError(f"{NAMES[0]} is on {first.device}; kernels run on {DEVICE}")
    key = (kind, first.device, *[(t.shape, t.dtype) for t in tensors])
    call = _calls.get(key)
    if call is None:
        with _binding:
            call = _calls.get(key) or _bound_or_reason(kind, tensors)
            if len(_calls) >= _MOST_CALLS:
                _calls.clear()
            _calls[key] = call
    if isinstance(call, str):
        raise NoKernelError(call)
    for name, tensor in zip(NAMES, tensors, strict=True):
        if tensor.device != first.device:
            raise NoKernelError(f"{name} is on {tensor.device}, {NAMES[0]} on {first.device}")
        if tensor.layout is not torch.strided or not tensor.is_contiguous() or tensor.is_neg():
            raise NoKernelError(f"{name} is not contiguous")
    call.check_addresses([tensor.data_ptr() for tensor in tensors])
    call.check_settings()
    return call


def relayout() -> None:
    """Lay weights out again at their next use.

    Writes through `.data`, and those of a replayed CUDA graph, are not noticed: this is for them.
    """
    for layouts in _layouts.values():
        layouts.forget()


def sequence_of(
    specialisation: dict[str, Any], kind: Sizes, shapes: tuple[tuple[int, ...], ...], limits: Any
) -> tuple[Sequence, dict[str, Any]]:
    """Return what a plan does for inputs of some shapes, and its macros.

    Raises:
        NoKernelError: the plan does not fit them, or is for other sizes.
    """
    given = zip(INPUTS, shapes, strict=True)
    types = WORKLOADS[0]["tensors"]
    tensors = {name: Buffer("tensor", name, types[name][0], shape) for name, shape in given}
    for name, (shape, dtype) in zip(OUTPUTS, outputs_of(kind, shapes), strict=True):
        tensors[name] = Buffer("tensor", name, dtype, shape)
    paths = WORKLOADS[0]["weights"]
    sizes = {n: tuple(t.shape) for n, t in _tensors_of(kind).items()}
    for name, path in paths.items():
        tensors[name] = Buffer("tensor", name, types[name][0], sizes[path])
    names: dict[str, Any] = tensors | scalars_of(skeleton(kind), constants_of(kind))
    if len(OUTPUTS) == 1:
        names.setdefault("out0", tensors["out"])
    by_path = {path: tensors[name] for name, path in paths.items()}
    try:
        recorder = Recorder({}, limits, by_path)
        macros, prepare, launch = specialisation["plan"](recorder, limits, names)
        recorder._kernels = {
            name: Kernel(*declaration)
            for name, declaration in _object_of(specialisation, macros)["kernels"].items()
        }
        made = {} if prepare is None else prepare()
        recorder.end_prepare()
        launch(made)
        return recorder.finish(), macros
    except NoKernelError:
        raise
    except (
        ArithmeticError,
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        NameError,
    ) as error:
        raise NoKernelError(f"the plan does not fit these shapes: {error}") from error


def _bound_or_reason(kind: Sizes, tensors: list[torch.Tensor]) -> BoundCall | str:
    try:
        return _bound(kind, tensors)
    except NoKernelError as error:
        return str(error)


def _bound(kind: Sizes, tensors: list[torch.Tensor]) -> BoundCall:
    for name, tensor in zip(NAMES, tensors, strict=True):
        expected = WORKLOADS[0]["tensors"][name][0]
        if tensor.dtype is not getattr(torch, expected):
            raise NoKernelError(f"{name} is {tensor.dtype}; kernels take {expected}")
    shapes = tuple(tuple(t.shape) for t in tensors[: len(INPUTS)])
    for path, tensor in zip(WORKLOADS[0]["weights"].values(), tensors[len(INPUTS) :], strict=True):
        if _tensors_of(kind)[path].shape != tensor.shape:
            raise NoKernelError(f"{path} has the sizes {tuple(tensor.shape)}")
    sizes = dict(sizes_of_call(kind, shapes))
    device = device_of(tensors[0])
    reasons = []
    for number, specialisation in enumerate(SPECIALISATIONS):
        try:
            _check_range(specialisation, sizes)
            sequence, macros = sequence_of(specialisation, kind, shapes, device.limits)
            found = _object_of(specialisation, macros)
            program = _program(device, found["object"])
        except NoKernelError as error:
            reasons.append(str(error))
            continue
        key = (number, kind, tensors[0].device, tuple(macros.items()))
        layouts = _layouts.setdefault(key, Layouts())
        return BoundCall(device, program, sequence, layouts, tensors, outputs_of(kind, shapes))
    raise NoKernelError("; ".join(dict.fromkeys(reasons)))


def _tensors_of(kind: Sizes) -> dict[str, torch.Tensor]:
    model = skeleton(kind)
    return dict(model.named_parameters()) | dict(model.named_buffers())


def _check_range(specialisation: dict[str, Any], sizes: dict[str, int]) -> None:
    for name, size in sizes.items():
        judged = [WORKLOADS[i]["sizes"][name] for i in specialisation["workloads"]]
        if not min(judged) <= size <= max(judged):
            listed = " to ".join(map(str, sorted({min(judged), max(judged)})))
            raise NoKernelError(f"{name} = {size} was not judged, only {listed}")


def _object_of(specialisation: dict[str, Any], macros: dict[str, Any]) -> dict[str, Any]:
    for found in specialisation["objects"]:
        if found["macros"] == macros:
            known: dict[str, Any] = found
            return known
    text = ", ".join(f"{name} = {value}" for name, value in macros.items())
    raise NoKernelError(f"there is no object code for {text}")


def _program(device: Any, number: int) -> Any:
    key = (id(device), number)
    if key not in _programs:
        _programs[key] = device.load(zlib.decompress(base64.b85decode(OBJECTS[number])))
    return _programs[key]
