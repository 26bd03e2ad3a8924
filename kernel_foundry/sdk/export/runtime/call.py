"""Calls of known shapes: found, bound once, and run.

A call runs a kernel only where everything is as it was judged; else `NoKernelError` says what is
not, and whoever asked runs the reference.
"""

import base64
import threading
import weakref
import zlib
from collections.abc import Callable, Iterable
from functools import partial, reduce
from operator import or_
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
    moved,
    positions,
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
    WORKLOADS,
)
from kernel_foundry.sdk.export.runtime.tf32 import check_tf32

DEVICE: Final = {"sycl": "cpu", "cuda": "cuda"}[LANGUAGE]
"""Type of the devices that kernels run on, as torch calls it."""
_MOST_CALLS: Final = 1024
"""Calls of different shapes that are remembered."""
_PLACE: Final = 512
"""Bytes that buffers of a plan begin at a multiple of, as torch's allocators have it."""
_ORDER: Final = (*INPUTS, *WORKLOADS[0]["weights"])
"""Names of the tensors of a call, in order."""


class BoundCall:
    """A plan bound to shapes, on a device.

    Its memory is a list of slots: the tensors of the schema, then the results, then the plan's own.

    Args:
        device: Where it runs.
        program: The loaded object code.
        sequence: What it does.
        layouts: What `prepare` made of weights before, for calls that share it.
        tensors: Inputs and weights as they are given, in the order of the schema.
        outputs: Shape and dtype of each output.
    """

    def __init__(
        self,
        device: Any,
        program: Any,
        sequence: Sequence,
        layouts: "_Layouts",
        tensors: list[torch.Tensor],
        outputs: tuple[tuple[tuple[int, ...], str], ...],
    ) -> None:
        self._device = device
        self._misplaced = device.alignment - 1
        self._place = tensors[0].device
        self._layouts = layouts
        self.outputs = tuple((shape, getattr(torch, dtype)) for shape, dtype in outputs)
        self._makers = [_maker(*output, self._place) for output in self.outputs]
        self._buffers = _in_slots(sequence.buffers)
        slots = {id(buffer): slot for slot, buffer in enumerate(self._buffers)}
        self._slots = [slots[id(buffer)] for buffer in sequence.buffers]
        first = len(_ORDER) + len(OUTPUTS)
        own = list(enumerate(self._buffers))[first:]
        self._unset = [0] * len(own)
        self._prepared = [slot for slot, buffer in own if buffer.kind == "prepared"]
        both = (*sequence.prepare, *sequence.steps)
        cleared = {self._slots[step.buffer] for step in both if isinstance(step, Clear)}
        self._cleared = sorted(cleared)
        self._scratch = _Scratch([(s, b) for s, b in own if b.kind == "scratch"], cleared)
        self._prepare = self._parts(program, sequence.prepare)
        self._steps = self._parts(program, sequence.steps)
        library = [step for step in both if isinstance(step, LibraryCall)]
        self.has_library_calls = bool(library)
        is_rounded = not device.is_host
        self._rounded = [
            call
            for call in library
            if is_rounded and sequence.buffers[call.output].dtype == "float32"
        ]
        """Those that torch may round to TF32."""
        self._is_simple = not own and not self.has_library_calls
        """Whether its memory is that of the schema alone."""
        self.has_settings = not DETERMINISTIC or self.has_library_calls
        """Whether `check_settings` may refuse any."""
        read = {self._slots[i] for step in sequence.prepare for i in positions(step)}
        self._laid_out = [slot for slot in range(len(_ORDER)) if slot in read]

    @property
    def alignment(self) -> int:
        """Bytes that addresses of tensors are a multiple of."""
        return int(self._device.alignment)

    def results(self, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        """Return new tensors with the results of inputs and weights.

        Raises:
            NoKernelError: a tensor does not begin where kernels expect it, or the device refuses.
        """
        if not self._device.is_current():
            with self._device.current():
                return self.results(tensors)
        addresses = [tensor.data_ptr() for tensor in tensors]
        if reduce(or_, addresses) & self._misplaced:
            self.check_addresses(addresses)
        results = [make() for make in self._makers]
        self._start(addresses, tensors, results)
        return results

    def run(self, tensors: list[torch.Tensor], results: list[torch.Tensor]) -> None:
        """Compute the results of inputs and weights, in the order of the schema."""
        if not self._device.is_current():
            with self._device.current():
                self.run(tensors, results)
                return
        self._start([tensor.data_ptr() for tensor in tensors], tensors, results)

    def new_results(self) -> list[torch.Tensor]:
        """Return new tensors for the results."""
        with self._device.current():
            return [make() for make in self._makers]

    def check_addresses(self, addresses: list[int]) -> None:
        """Refuse tensors that do not begin where kernels expect it.

        Raises:
            NoKernelError: one of them does not.
        """
        for name, address in zip(_ORDER, addresses, strict=True):
            if address & self._misplaced:
                raise NoKernelError(
                    f"{name} does not begin at a multiple of {self.alignment} bytes"
                )

    def check_settings(self) -> None:
        """Refuse settings of torch that kernels were not judged under.

        Raises:
            NoKernelError: there is one.
        """
        if not DETERMINISTIC and torch.are_deterministic_algorithms_enabled():
            raise NoKernelError("the kernels do not give the same bits each time")
        check_tf32(self._rounded)

    def _start(
        self, addresses: list[int], tensors: list[torch.Tensor], results: list[torch.Tensor]
    ) -> None:
        if self._is_simple:
            addresses += [result.data_ptr() for result in results]
            for row in self._steps:
                row.run(addresses)
            return
        laid_out = self._layout_of(tensors, addresses) if self._prepared else ()
        scratch = None
        if self._scratch.places:
            scratch = self._scratch.memory(self._place, is_kept=self._device.is_host)
        if self.has_library_calls:
            self._start_parts([*tensors, *results], laid_out, scratch)
            return
        addresses += [result.data_ptr() for result in results]
        addresses += self._unset
        if scratch is not None:
            base = scratch.data_ptr()
            for slot, offset, _ in self._scratch.places:
                addresses[slot] = base + offset
        for slot, tensor in zip(self._prepared, laid_out, strict=True):
            addresses[slot] = tensor.data_ptr()
        for row in self._steps:
            row.run(addresses)

    def _start_parts(
        self, given: list[Any], laid_out: Iterable[torch.Tensor], scratch: torch.Tensor | None
    ) -> None:
        memory = given + [None] * (len(self._buffers) - len(given))
        for slot, tensor in zip(self._prepared, laid_out, strict=True):
            memory[slot] = tensor
        if scratch is not None:
            for slot, tensor in self._scratch.tensors(scratch):
                memory[slot] = tensor
        self._run_parts(self._steps, memory)

    def _run_parts(self, parts: list[Any], memory: list[Any]) -> None:
        for part in parts:
            if isinstance(part, LibraryCall):
                _call_library(part, memory)
            else:
                part.run([0 if m is None else m.data_ptr() for m in memory])

    def _layout_of(self, tensors: list[torch.Tensor], addresses: list[int]) -> list[torch.Tensor]:
        weights = [tensors[slot] for slot in self._laid_out]
        found = self._layouts.of(weights, [addresses[slot] for slot in self._laid_out])
        if found is None:
            found = self._lay_out(tensors)
            self._layouts.keep(weights, found)
        return found

    def _lay_out(self, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        memory: list[Any] = [*tensors, *[None] * len(OUTPUTS)]
        own = self._buffers[len(memory) :]
        memory += [
            torch.empty(b.shape, dtype=getattr(torch, b.dtype), device=self._place) for b in own
        ]
        for slot in self._cleared:
            memory[slot].zero_()
        self._run_parts(self._prepare, memory)
        return [memory[slot] for slot in self._prepared]

    def _parts(self, program: Any, steps: tuple[Step, ...]) -> list[Any]:
        """Rows of launches and library calls between them."""
        parts: list[Any] = []
        row: list[Launch] = []

        def end_row() -> None:
            if row:
                parts.append(self._device.bind(program, tuple(row), len(self._buffers)))
                row.clear()

        for step in steps:
            if isinstance(step, Launch):
                row.append(moved(step, self._slots))
            elif isinstance(step, LibraryCall):
                end_row()
                parts.append(moved(step, self._slots))
        end_row()
        return parts


class _Scratch:
    """Memory of a plan for one call: one piece, in which each of its buffers has a place.

    Args:
        buffers: With their slots.
        cleared: Slots of those that are zero when a call begins.
    """

    def __init__(self, buffers: list[tuple[int, Buffer]], cleared: set[int]) -> None:
        self.places: list[tuple[int, int, Buffer]] = []
        """Slot, offset in bytes and buffer."""
        self._cleared: list[tuple[int, int]] = []
        self._own = threading.local()
        end = 0
        for slot, buffer in buffers:
            size = buffer.numel() * getattr(torch, buffer.dtype).itemsize
            self.places.append((slot, end, buffer))
            if slot in cleared:
                self._cleared.append((end, size))
            end += -(-size // _PLACE) * _PLACE
        self._bytes = end

    def memory(self, device: torch.device, *, is_kept: bool) -> torch.Tensor:
        """Return the memory; where it is kept, a thread has its own."""
        found: torch.Tensor | None = getattr(self._own, "kept", None) if is_kept else None
        if found is None:
            found = torch.empty(self._bytes, dtype=torch.uint8, device=device)
            if is_kept:
                self._own.kept = found
        for offset, size in self._cleared:
            found.narrow(0, offset, size).zero_()
        return found

    def tensors(self, memory: torch.Tensor) -> list[tuple[int, torch.Tensor]]:
        """Return each buffer as a tensor, with its slot."""
        found = []
        for slot, offset, buffer in self.places:
            dtype = getattr(torch, buffer.dtype)
            part = memory.narrow(0, offset, buffer.numel() * dtype.itemsize)
            found.append((slot, part.view(dtype).view(buffer.shape)))
        return found


class _Layout(NamedTuple):
    weights: list[tuple[Any, int, int]]
    """Each a weak reference, its version and its address."""
    memory: list[Any]
    """Of the weights: what `.data` puts in its place lies elsewhere as long as this is held."""
    made: list[torch.Tensor]
    moment: Any
    """After which the layout is complete."""


class _Layouts:
    """What `prepare` made of weights, as long as they are the same tensors of the same version."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, ...], _Layout] = {}

    def of(self, weights: list[torch.Tensor], addresses: list[int]) -> list[torch.Tensor] | None:
        """Return the layout of these weights as they are now; None where it is to be made."""
        entry = self._kept.get(tuple(map(id, weights)))
        if entry is None:
            return None
        for (reference, version, address), tensor, now in zip(
            entry.weights, weights, addresses, strict=True
        ):
            if reference() is not tensor or version != tensor._version or address != now:
                return None
        if entry.moment is not None:
            if is_captured():
                return None
            join(entry.moment, entry.made)
        return entry.made

    def keep(self, weights: list[torch.Tensor], made: list[torch.Tensor]) -> None:
        """Remember a layout until one of its weights is gone."""
        if _is_unversioned(weights):
            return
        key = tuple(map(id, weights))

        def drop(gone: Any) -> None:
            entry = self._kept.get(key)
            if entry is not None and any(known[0] is gone for known in entry.weights):
                self._kept.pop(key, None)

        known = [(weakref.ref(t, drop), t._version, t.data_ptr()) for t in weights]
        memory = [t.untyped_storage() for t in weights]
        self._kept[key] = _Layout(known, memory, made, moment_of(made[0]))

    def forget(self) -> None:
        """Lay all weights out again at their next use."""
        self._kept.clear()


_layouts: dict[tuple[Any, ...], _Layouts] = {}
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
        raise NoKernelError(f"{_ORDER[0]} is on {first.device}; kernels run on {DEVICE}")
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
    for name, tensor in zip(_ORDER, tensors, strict=True):
        if tensor.device != first.device:
            raise NoKernelError(f"{name} is on {tensor.device}, {_ORDER[0]} on {first.device}")
        if tensor.layout is not torch.strided or not tensor.is_contiguous() or tensor.is_neg():
            raise NoKernelError(f"{name} is not contiguous")
    call.check_addresses([tensor.data_ptr() for tensor in tensors])
    call.check_settings()
    return call


def relayout() -> None:
    """Lay weights out again at their next use: for weights that were changed through `.data`."""
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
        key = (number, kind, tensors[0].device, tuple(macros.items()))
        layouts = _layouts.setdefault(key, _Layouts())
        return BoundCall(device, program, sequence, layouts, tensors, outputs_of(kind, shapes))
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


def _in_slots(buffers: tuple[Buffer, ...]) -> list[Buffer]:
    """All buffers of a call: a place for each tensor of the schema, used or not, comes first."""
    by_name = {b.name: b for b in buffers if b.kind == "tensor"}
    named = [
        by_name[name] if name in by_name else Buffer("tensor", name, "", ())
        for name in (*_ORDER, *OUTPUTS)
    ]
    return [*named, *(b for b in buffers if b.kind != "tensor")]


def _maker(
    shape: tuple[int, ...], dtype: torch.dtype, place: torch.device
) -> Callable[[], torch.Tensor]:
    """What makes a new tensor on the current device, in the quickest way that torch has."""
    # No public function: other releases may have another one.
    quick = getattr(torch._C._dynamo.guards, f"_empty_strided_{place.type}", None)
    if quick is None:
        return partial(torch.empty, shape, dtype=dtype, device=place)
    strides = torch.empty(shape, device="meta").stride()
    return partial(quick, shape, strides, dtype)


def _call_library(step: LibraryCall, memory: list[Any]) -> None:
    def value(item: Any) -> Any:
        if isinstance(item, Operand):
            return memory[item.buffer]
        return tuple(map(value, item)) if isinstance(item, tuple) else item

    arguments = map(value, step.arguments)
    keywords = {name: value(item) for name, item in step.keywords.items()}
    with torch.no_grad():
        result = step.function(*arguments, **keywords).contiguous()
        if step.is_new:
            memory[step.output] = result
        else:
            memory[step.output].copy_(result)


def _is_unversioned(weights: list[torch.Tensor]) -> bool:
    """Whether nobody can tell later if the weights have changed.

    A graph that is captured now runs again when they have.
    """
    for tensor in weights:
        if tensor.is_inference():
            return True
    return weights[0].is_cuda and is_captured()
