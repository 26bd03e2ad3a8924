"""Calls of known shapes: found, bound once, and run.

A call runs a kernel only where everything is as it was judged; else `NoKernelError` says what is
not, and whoever asked runs the reference.
"""

import base64
import threading
import weakref
import zlib
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import torch

from kernel_foundry.sdk.export.runtime.opencl import device_of
from kernel_foundry.sdk.export.runtime.plan import (
    Buffer,
    Clear,
    Kernel,
    Launch,
    LibraryCall,
    NoKernelError,
    Operand,
    Recorder,
    Sequence,
    Step,
)
from kernel_foundry.sdk.export.runtime.reference import (
    Sizes,
    constants_of,
    outputs_of,
    scalars_of,
    sizes_of_call,
    skeleton,
)
from kernel_foundry.sdk.export.runtime.streams import is_captured, join, moment_of
from kernel_foundry.sdk.export.runtime.task import (
    DETERMINISTIC,
    INPUTS,
    LANGUAGE,
    OBJECTS,
    OUTPUTS,
    SPECIALISATIONS,
    TF32,
    WORKLOADS,
)

_DEVICE: Final = {"sycl": "cpu", "cuda": "cuda"}[LANGUAGE]
_MOST_CALLS: Final = 1024
"""Calls of different shapes that are remembered."""
_MOST_WEIGHTS: Final = 64
"""Sets of weights whose layout is remembered."""
_ORDER: Final = (*INPUTS, *WORKLOADS[0]["weights"])
"""Names of the tensors of a call, in order."""


class BoundCall:
    """A plan bound to shapes, on a device.

    Args:
        device: Where it runs.
        program: The loaded object code.
        sequence: What it does.
        layout: Which layout of weights `prepare` makes; calls that share one have it in common.
        outputs: Shape and dtype of each output.
    """

    def __init__(
        self,
        device: Any,
        program: Any,
        sequence: Sequence,
        layout: tuple[Any, ...],
        outputs: tuple[tuple[tuple[int, ...], str], ...],
    ) -> None:
        self._device = device
        self._buffers = sequence.buffers
        self._layout = layout
        self.outputs = tuple((shape, getattr(torch, dtype)) for shape, dtype in outputs)
        names = [b.name if b.kind == "tensor" else "" for b in sequence.buffers]
        self._given = [(i, _ORDER.index(n)) for i, n in enumerate(names) if n in _ORDER]
        self._taken = [(i, OUTPUTS.index(n)) for i, n in enumerate(names) if n in OUTPUTS]
        kinds = [b.kind for b in sequence.buffers]
        self._scratch = [i for i, kind in enumerate(kinds) if kind == "scratch"]
        self._prepared = [i for i, kind in enumerate(kinds) if kind == "prepared"]
        both = (*sequence.prepare, *sequence.steps)
        self._cleared = {step.buffer for step in both if isinstance(step, Clear)}
        self._prepare = self._parts(program, sequence.prepare)
        self._steps = self._parts(program, sequence.steps)
        self.has_library_calls = any(isinstance(step, LibraryCall) for step in both)
        read = {i for step in sequence.prepare for i in range(len(names)) if _names(step, i)}
        self._laid_out = [index for i, index in self._given if i in read]
        self._own = threading.local()

    @property
    def alignment(self) -> int:
        """Bytes that addresses of tensors are a multiple of."""
        return int(self._device.alignment)

    def run(self, tensors: list[torch.Tensor], results: list[torch.Tensor]) -> None:
        """Compute the results of inputs and weights, in the order of the schema."""
        memory: list[Any] = [None] * len(self._buffers)
        for position, index in self._given:
            memory[position] = tensors[index]
        for position, index in self._taken:
            memory[position] = results[index]
        for position, scratch in zip(self._scratch, self._scratch_on(tensors[0]), strict=True):
            memory[position] = scratch
        if self._prepared:
            laid_out = _layouts.of(self._layout, [tensors[i] for i in self._laid_out])
            if laid_out is None:
                laid_out = self._lay_out(tensors)
            for position, tensor in zip(self._prepared, laid_out, strict=True):
                memory[position] = tensor
        for part in self._steps:
            part(memory)

    def results_on(self, device: torch.device) -> list[torch.Tensor]:
        """Return new tensors for the results."""
        return [torch.empty(shape, dtype=dtype, device=device) for shape, dtype in self.outputs]

    def _lay_out(self, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        device = tensors[0].device
        memory = [None if b.kind == "tensor" else _memory(b, device) for b in self._buffers]
        for position in self._cleared:
            cleared = memory[position]
            assert cleared is not None, "plans clear memory of their own"
            cleared.zero_()
        for position, index in self._given:
            memory[position] = tensors[index]
        for part in self._prepare:
            part(memory)
        made = [memory[position] for position in self._prepared]
        found = [tensor for tensor in made if tensor is not None]
        _layouts.keep(self._layout, [tensors[i] for i in self._laid_out], found)
        return found

    def _scratch_on(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """Memory for the plan: on the CPU a thread keeps its own, as no call outlives its end."""
        kept: list[torch.Tensor] | None = getattr(self._own, "scratch", None)
        if kept is None or not self._device.is_host:
            kept = [_memory(self._buffers[i], tensor.device) for i in self._scratch]
            self._own.scratch = kept if self._device.is_host else None
        for position, scratch in zip(self._scratch, kept, strict=True):
            if position in self._cleared:
                scratch.zero_()
        return kept

    def _parts(self, program: Any, steps: tuple[Step, ...]) -> list[Callable[[list[Any]], None]]:
        """Functions of the memory, each for a library call or for launches in a row."""
        parts: list[Callable[[list[Any]], None]] = []
        row: list[Any] = []
        used: set[int] = set()

        def end_row() -> None:
            if row:
                parts.append(self._launches(list(row), sorted(used)))
                row.clear()
                used.clear()

        for step in steps:
            if isinstance(step, Launch):
                row.append(self._device.bind(program, step))
                used.update(a for a in step.arguments if type(a) is int)
            elif isinstance(step, LibraryCall):
                end_row()
                parts.append(_library_part(step))
        end_row()
        return parts

    def _launches(self, launches: list[Any], used: list[int]) -> Callable[[list[Any]], None]:
        count = len(self._buffers)

        def run(memory: list[Any]) -> None:
            addresses = [0] * count
            for position in used:
                addresses[position] = memory[position].data_ptr()
            self._device.run(launches, addresses)

        return run


class _Layout(NamedTuple):
    weights: list[tuple[Any, int, int]]
    """Each a weak reference, its version and its address."""
    made: list[torch.Tensor]
    moment: Any
    """After which the layout is complete."""


class _Layouts:
    """What `prepare` made of weights, as long as they are the same tensors of the same version."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Any, ...], list[_Layout]] = {}
        self._lock = threading.Lock()

    def of(self, layout: tuple[Any, ...], weights: list[torch.Tensor]) -> list[torch.Tensor] | None:
        """Return the layout of these weights as they are now; None where it is to be made."""
        if _is_unversioned(weights):
            return None
        for entry in self._kept.get(layout, ()):
            if all(
                _is(known, tensor) for known, tensor in zip(entry.weights, weights, strict=True)
            ):
                join(entry.moment, entry.made)
                return entry.made
        return None

    def keep(
        self, layout: tuple[Any, ...], weights: list[torch.Tensor], made: list[torch.Tensor]
    ) -> None:
        """Remember a layout."""
        if _is_unversioned(weights):
            return
        known = [(weakref.ref(t), t._version, t.data_ptr()) for t in weights]
        entry = _Layout(known, made, moment_of(made[0]))
        with self._lock:
            others = [e for e in self._kept.get(layout, ()) if not _replaces(weights, e)]
            self._kept[layout] = [entry, *others[: _MOST_WEIGHTS - 1]]

    def forget(self) -> None:
        """Lay all weights out again at their next use."""
        with self._lock:
            self._kept.clear()


_layouts = _Layouts()
_calls: dict[tuple[Any, ...], BoundCall | str] = {}
_programs: dict[tuple[int, int], Any] = {}
_binding = threading.RLock()


def bound_call(kind: Sizes, tensors: list[torch.Tensor]) -> BoundCall:
    """Return the call for inputs and weights, in the order of the schema.

    Raises:
        NoKernelError: it has to be the reference's.
    """
    first = tensors[0]
    if first.device.type != _DEVICE:
        raise NoKernelError(f"{_ORDER[0]} is on {first.device}; kernels run on {_DEVICE}")
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
    alignment = call.alignment
    for name, tensor in zip(_ORDER, tensors, strict=True):
        if tensor.device != first.device:
            raise NoKernelError(f"{name} is on {tensor.device}, {_ORDER[0]} on {first.device}")
        if tensor.layout is not torch.strided or not tensor.is_contiguous() or tensor.is_neg():
            raise NoKernelError(f"{name} is not contiguous")
        if tensor.data_ptr() % alignment:
            raise NoKernelError(f"{name} does not begin at a multiple of {alignment} bytes")
    if not DETERMINISTIC and torch.are_deterministic_algorithms_enabled():
        raise NoKernelError("the kernels do not give the same bits each time")
    if call.has_library_calls and not call._device.is_host:
        is_on = torch.backends.cuda.matmul.allow_tf32
        if is_on != TF32 or torch.backends.cudnn.allow_tf32 != TF32:
            raise NoKernelError(f"torch's TF32 is {'on' if is_on else 'off'}")
    return call


def relayout() -> None:
    """Lay weights out again at their next use: for weights that were changed through `.data`."""
    _layouts.forget()


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
    for name, tensor in zip(_ORDER, tensors, strict=True):
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
        layout = (number, kind, tensors[0].device, tuple(macros.items()))
        return BoundCall(device, program, sequence, layout, outputs_of(kind, shapes))
    raise NoKernelError("; ".join(dict.fromkeys(reasons)))


def _tensors_of(kind: Sizes) -> dict[str, torch.Tensor]:
    model = skeleton(kind)
    return dict(model.named_parameters()) | dict(model.named_buffers())


def _check_range(specialisation: dict[str, Any], sizes: dict[str, int]) -> None:
    """Refuse sizes that are not between those that were judged."""
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


def _memory(buffer: Buffer, device: torch.device) -> torch.Tensor:
    return torch.empty(buffer.shape, dtype=getattr(torch, buffer.dtype), device=device)


def _library_part(step: LibraryCall) -> Callable[[list[Any]], None]:
    def value(memory: list[Any], item: Any) -> Any:
        if isinstance(item, Operand):
            return memory[item.buffer]
        return tuple(value(memory, i) for i in item) if isinstance(item, tuple) else item

    def run(memory: list[Any]) -> None:
        arguments = [value(memory, item) for item in step.arguments]
        keywords = {name: value(memory, item) for name, item in step.keywords.items()}
        with torch.no_grad():
            result = step.function(*arguments, **keywords).contiguous()
            if step.is_new:
                memory[step.output] = result
            else:
                memory[step.output].copy_(result)

    return run


def _names(step: Step, position: int) -> bool:
    if isinstance(step, Launch):
        return any(type(a) is int and a == position for a in step.arguments)
    if isinstance(step, LibraryCall):
        return Operand(position) in (*step.arguments, *step.keywords.values())
    return False


def _is_unversioned(weights: list[torch.Tensor]) -> bool:
    """Whether nobody can tell later if the weights have changed.

    A graph that is captured now runs again when they have.
    """
    if any(t.is_inference() for t in weights):
        return True
    return any(t.is_cuda for t in weights) and is_captured()


def _is(known: tuple[Any, int, int], tensor: torch.Tensor) -> bool:
    reference, version, address = known
    return reference() is tensor and version == tensor._version and address == tensor.data_ptr()


def _replaces(weights: list[torch.Tensor], entry: _Layout) -> bool:
    known = [reference() for reference, _, _ in entry.weights]
    return any(k is None for k in known) or all(k is w for k, w in zip(known, weights, strict=True))
