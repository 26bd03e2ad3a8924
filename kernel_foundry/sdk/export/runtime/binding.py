"""Finds the plan for a call, and binds it once for each kind of call.

A call runs a kernel only where everything is as it was judged; else `NoKernelError` says what is
not, and whoever asked runs the reference.
"""

import base64
import contextlib
import threading
import zlib
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import torch

from kernel_foundry.sdk.export.runtime.bound_call import BoundCall
from kernel_foundry.sdk.export.runtime.layouts import Layouts, promised
from kernel_foundry.sdk.export.runtime.opencl import device_of
from kernel_foundry.sdk.export.runtime.plan import (
    Buffer,
    Kernel,
    NoKernelError,
    Recorder,
    Sequence,
)
from kernel_foundry.sdk.export.runtime.reference import (
    Shape,
    Sizes,
    constants_of,
    outputs_of,
    scalars_of,
    sizes_of_call,
    skeleton,
)
from kernel_foundry.sdk.export.runtime.task import (
    BACKWARD,
    BACKWARD_DETERMINISTIC,
    DETERMINISTIC,
    GRADIENTS,
    GRADS,
    INPUTS,
    LANGUAGE,
    OBJECTS,
    OUTPUTS,
    SPECIALISATIONS,
    WORKLOADS,
)

DEVICE: Final = {"sycl": "cpu", "cuda": "cuda"}[LANGUAGE]
"""Type of the devices that kernels run on, as torch calls it."""
NAMES: Final = (*INPUTS, *WORKLOADS[0]["weights"])
"""Of the tensors of a call: inputs and weights, in order."""
_MOST_CALLS: Final = 1024
"""Calls of different shapes that are remembered."""

_layouts: dict[tuple[Any, ...], Layouts] = {}
_calls: dict[tuple[Any, ...], BoundCall | str] = {}
_programs: dict[tuple[int, int], Any] = {}
_binding = threading.RLock()


class Pass(NamedTuple):
    """The forward pass, or the backward pass: what its plans take and give."""

    names: tuple[str, ...]
    """Of the tensors that it takes, in order."""
    outputs: tuple[str, ...]
    """Of those that it gives."""
    specialisations: tuple[dict[str, Any], ...]
    is_deterministic: bool
    """Whether repeated calls gave equal bits."""
    tensors: Callable[[Sizes, tuple[Shape, ...]], dict[str, Buffer]]
    """All that a plan may name, for a module and shapes of the forward pass's inputs."""


def bound_call(kind: Sizes, tensors: list[torch.Tensor]) -> BoundCall:
    """Return the forward pass for inputs and weights, in the order of the schema.

    Raises:
        NoKernelError: it has to be the reference's.
    """
    return _call_of(_FORWARD, kind, tensors)


def bound_backward(kind: Sizes, tensors: list[torch.Tensor]) -> BoundCall:
    """Return the backward pass for inputs and weights, then the gradients by results of floats.

    Raises:
        NoKernelError: it has to be the reference's.
    """
    return _call_of(_BACKWARD, kind, tensors)


def _call_of(which: Pass, kind: Sizes, tensors: list[torch.Tensor]) -> BoundCall:
    first = tensors[0]
    if first.device.type != DEVICE:
        raise NoKernelError(f"{NAMES[0]} is on {first.device}; kernels run on {DEVICE}")
    key = (which.names, kind, first.device, *[(t.shape, t.dtype) for t in tensors])
    call = _calls.get(key)
    if call is None:
        with _binding:
            call = _calls.get(key) or _bound_or_reason(which, kind, tensors)
            if len(_calls) >= _MOST_CALLS:
                _calls.clear()
            _calls[key] = call
    if isinstance(call, str):
        raise NoKernelError(call)
    for name, tensor in zip(which.names, tensors, strict=True):
        if tensor.device != first.device:
            raise NoKernelError(f"{name} is on {tensor.device}, {NAMES[0]} on {first.device}")
        if tensor.layout is not torch.strided or not tensor.is_contiguous() or tensor.is_neg():
            raise NoKernelError(f"{name} is not contiguous")
    call.check_addresses([tensor.data_ptr() for tensor in tensors])
    call.check_settings()
    return call


def fixed_weights() -> contextlib.AbstractContextManager[None]:
    """Promise that weights do not change: CUDA graphs captured below read them as laid out now.

    Without it a graph lays them out in each replay. Enter it before the capture, and run the module
    once before as well; a graph that was captured below is wrong after its weights have changed.
    """
    kept = [layout for layouts in list(_layouts.values()) for layout in list(layouts.kept.values())]
    return promised(kept)


def relayout() -> None:
    """Lay weights out again at their next use.

    Writes through `.data`, and those of a replayed CUDA graph, are not noticed: this is for them.
    """
    for layouts in _layouts.values():
        layouts.forget()


def sequence_of(
    specialisation: dict[str, Any], kind: Sizes, shapes: tuple[Shape, ...], limits: Any
) -> tuple[Sequence, dict[str, Any]]:
    """Return what a plan does for inputs of some shapes, and its macros.

    Raises:
        NoKernelError: the plan does not fit them, or is for other sizes.
    """
    return _recorded(specialisation, kind, _forward_tensors(kind, shapes), limits)


def _recorded(
    specialisation: dict[str, Any], kind: Sizes, tensors: dict[str, Buffer], limits: Any
) -> tuple[Sequence, dict[str, Any]]:
    names: dict[str, Any] = tensors | scalars_of(skeleton(kind), constants_of(kind))
    if "out" in tensors:
        names.setdefault("out0", tensors["out"])
    by_path = {path: tensors[name] for name, path in WORKLOADS[0]["weights"].items()}
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


def _forward_tensors(kind: Sizes, shapes: tuple[Shape, ...]) -> dict[str, Buffer]:
    found = {n: _buffer(n, _DTYPES[n], shape) for n, shape in zip(INPUTS, shapes, strict=True)}
    for name, (shape, dtype) in zip(OUTPUTS, outputs_of(kind, shapes), strict=True):
        found[name] = _buffer(name, dtype, shape)
    weights = {path: tuple(tensor.shape) for path, tensor in _tensors_of(kind).items()}
    for name, path in WORKLOADS[0]["weights"].items():
        found[name] = _buffer(name, _DTYPES[name], weights[path])
    return found


def _backward_tensors(kind: Sizes, shapes: tuple[Shape, ...]) -> dict[str, Buffer]:
    found = _forward_tensors(kind, shapes)
    results = [found.pop(name) for name in OUTPUTS]
    for name, result in zip(GRADS, results, strict=True):
        found[name] = _buffer(name, result.dtype, result.shape)
    return found | {name: _buffer(name, found[of].dtype, found[of].shape) for name, of in GRADIENTS}


def _buffer(name: str, dtype: str, shape: Shape) -> Buffer:
    return Buffer("tensor", name, dtype, shape)


_DTYPES: Final = {name: dtype for name, (dtype, _) in WORKLOADS[0]["tensors"].items()}
_FORWARD: Final = Pass(NAMES, OUTPUTS, SPECIALISATIONS, DETERMINISTIC, _forward_tensors)
_BACKWARD: Final = Pass(
    (*NAMES, *GRADS),
    tuple(name for name, _ in GRADIENTS),
    BACKWARD,
    BACKWARD_DETERMINISTIC,
    _backward_tensors,
)


def _bound_or_reason(which: Pass, kind: Sizes, tensors: list[torch.Tensor]) -> BoundCall | str:
    try:
        return _bound(which, kind, tensors)
    except NoKernelError as error:
        return str(error)


def _bound(which: Pass, kind: Sizes, tensors: list[torch.Tensor]) -> BoundCall:
    dtypes = _DTYPES | {name: _DTYPES[of] for name, of in zip(GRADS, OUTPUTS, strict=False)}
    for name, tensor in zip(which.names, tensors, strict=True):
        if tensor.dtype is not getattr(torch, dtypes[name]):
            raise NoKernelError(f"{name} is {tensor.dtype}; kernels take {dtypes[name]}")
    shapes = tuple(tuple(t.shape) for t in tensors[: len(INPUTS)])
    sizes = dict(sizes_of_call(kind, shapes))
    named = which.tensors(kind, shapes)
    for name, tensor in zip(which.names, tensors, strict=True):
        if tuple(tensor.shape) != named[name].shape:
            path = WORKLOADS[0]["weights"].get(name, name)
            raise NoKernelError(f"{path} has the sizes {tuple(tensor.shape)}")
    device = device_of(tensors[0])
    reasons = []
    for number, specialisation in enumerate(which.specialisations):
        try:
            _check_range(specialisation, sizes)
            named = which.tensors(kind, shapes)
            sequence, macros = _recorded(specialisation, kind, named, device.limits)
            found = _object_of(specialisation, macros)
            program = _program(device, found["object"])
        except NoKernelError as error:
            reasons.append(str(error))
            continue
        key = (which.names, number, kind, tensors[0].device, tuple(macros.items()))
        return BoundCall(
            device,
            program,
            sequence,
            _layouts.setdefault(key, Layouts()),
            tensors,
            which.names,
            tuple((name, named[name].shape, named[name].dtype) for name in which.outputs),
            is_deterministic=which.is_deterministic,
        )
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
