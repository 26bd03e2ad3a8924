"""A launch plan bound to shapes: which buffers there are, and which steps run on them.

The plan itself is a Python function of this file; it computes sizes, and tells a `Recorder` what to
launch. Steps are run by `BoundCall`.
"""

import math
import struct
from collections.abc import Callable
from typing import Any, Final, NamedTuple, NoReturn

import torch


class NoKernelError(Exception):
    """No kernel here was judged for a call, and the message says why: the reference runs."""


class Buffer:
    """A tensor as a plan sees it: contiguous, of a known shape.

    Args:
        kind: "tensor" of the task, "scratch", or "result" of a library call; "prepared" once
            `prepare` is known to hand it on.
        name: Of a tensor of the task.
        dtype: Such as "float32".
        shape: Sizes, outermost first.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, kind: str, name: str, dtype: str, shape: tuple[int, ...]) -> None:
        self.kind = kind
        self.name = name
        self.dtype = dtype
        self.shape = shape

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def numel(self) -> int:
        """Return the number of elements."""
        return math.prod(self.shape)

    def size(self, dimension: int | None = None) -> Any:
        """Return all sizes, or one."""
        return self.shape if dimension is None else self.shape[dimension]

    def stride(self, dimension: int | None = None) -> Any:
        """Return the elements between neighbours in all dimensions, or in one."""
        strides = tuple(math.prod(self.shape[i + 1 :]) for i in range(len(self.shape)))
        return strides if dimension is None else strides[dimension]

    def __bool__(self) -> bool:
        raise TypeError("a tensor is neither true nor false")

    def __eq__(self, other: object) -> NoReturn:
        raise TypeError("tensors cannot be compared")


class Local(NamedTuple):
    """Local memory of a SYCL work-group."""

    elements: int
    dtype: str


class Limits(NamedTuple):
    """What a plan may ask about the device."""

    compute_units: int
    sub_group_size: int
    shared_bytes: int
    max_block: int


class Kernel(NamedTuple):
    """A kernel's declaration."""

    dimensions: int
    parameters: tuple[tuple[str, str, str, int], ...]
    """Name; "pointer", "value" or "local"; element type; lanes of a vector type."""
    max_threads: int | None = None


class Launch(NamedTuple):
    """One kernel launch."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dimensions: int
    shared_bytes: int
    is_cooperative: bool
    arguments: tuple[Any, ...]
    """Each the position of a buffer, the bytes of a number, or (element bytes, count) of local
    memory."""


class Clear(NamedTuple):
    """Fill a buffer with zeros, in every call."""

    buffer: int


class LibraryCall(NamedTuple):
    """One call of torch."""

    function: Callable[..., torch.Tensor]
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    output: int


class Operand(NamedTuple):
    """A tensor among the arguments of a library call."""

    buffer: int


Step = Launch | Clear | LibraryCall


class Sequence(NamedTuple):
    """All that a call does, in order."""

    buffers: tuple[Buffer, ...]
    prepare: tuple[Step, ...]
    """Done once for each set of weights."""
    steps: tuple[Step, ...]


_FORMATS: Final = {
    "int8": "b", "int16": "h", "int32": "i", "int64": "q",
    "uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q",
    "float16": "e", "float32": "f", "float64": "d", "bool": "?",
}  # fmt: skip
_BYTE_TYPES: Final = ("bool", "float8_e4m3fn", "float8_e5m2")
"""Types that a kernel may take as the bytes that they are."""


class Recorder:
    """Takes down what a plan launches.

    Args:
        kernels: Declarations by name.
        limits: Of the device.
        tensors: Of the task, by name and by dotted name.
    """

    def __init__(
        self, kernels: dict[str, Kernel], limits: Limits, tensors: dict[str, Buffer]
    ) -> None:
        self._kernels = kernels
        self._limits = limits
        self._tensors = tensors
        self._buffers: list[Buffer] = []
        self._prepared: list[Buffer] | None = None
        self._prepare: list[Step] = []
        self._steps: list[Step] = []

    def end_prepare(self) -> None:
        """Take what was recorded so far for `prepare`."""
        self._prepare, self._steps = self._steps, []
        self._prepared = [b for b in self._buffers if b.kind != "tensor"]

    def finish(self) -> Sequence:
        """Return what was recorded."""
        used = {id(self._buffers[i]) for step in self._steps for i in positions(step)}
        for buffer in self._prepared or ():
            if id(buffer) in used:
                buffer.kind = "prepared"
        return Sequence(tuple(self._buffers), tuple(self._prepare), tuple(self._steps))

    def require(self, holds: Any, condition: str) -> None:
        """Go on where a condition of the plan holds.

        Raises:
            NoKernelError: it does not.
        """
        if not holds:
            raise NoKernelError(f"the plan asks for {condition}")

    def parameter(self, path: str) -> Buffer:
        """Return a parameter or buffer by its dotted name."""
        return self._tensors[path]

    def empty(self, shape: Any, dtype: str) -> Buffer:
        """Return new memory."""
        sizes = shape if isinstance(shape, tuple) else (shape,)
        self.require(all(type(size) is int and size > 0 for size in sizes), "sizes above 0")
        return Buffer("scratch", "", dtype, sizes)

    def zeros(self, shape: Any, dtype: str) -> Buffer:
        """Return new memory that is cleared in every call."""
        buffer = self.empty(shape, dtype)
        self._steps.append(Clear(self._position(buffer)))
        return buffer

    def local(self, n: int, dtype: str) -> Local:
        """Return local memory of a work-group."""
        return Local(n, dtype)

    def library(self, name: str, /, *given: Any, **named: Any) -> Buffer:
        """Record a call of torch and return its result."""
        owner = torch.nn.functional if hasattr(torch.nn.functional, name) else torch
        function = getattr(owner, name)
        out = named.pop("out", None)
        shaped = function(*map(_shaped, given), **{k: _shaped(v) for k, v in named.items()})
        dtype = str(shaped.dtype).removeprefix("torch.")
        output = Buffer("result", "", dtype, tuple(shaped.shape)) if out is None else out
        arguments = tuple(self._operand(value) for value in given)
        keywords = {key: self._operand(value) for key, value in named.items()}
        position = self._position(output)
        self._steps.append(LibraryCall(function, arguments, keywords, position))
        return output

    def launch(self, name: str, setup: tuple[Any, ...], /, *given: Any, **named: Any) -> None:
        """Record a launch.

        Raises:
            NoKernelError: the device or the kernel cannot take it.
        """
        kernel = self._kernels[name]
        grid, block = _extent(setup[0]), _extent(setup[1])
        most = min(self._limits.max_block, kernel.max_threads or self._limits.max_block)
        self.require(math.prod(block) <= most, f"{name} with at most {most} work-items of a group")
        shared_bytes = setup[2] if len(setup) > 2 else 0
        self.require(shared_bytes <= self._limits.shared_bytes, f"{shared_bytes} shared bytes")
        names = [parameter[0] for parameter in kernel.parameters]
        values = dict(zip(names, given, strict=False)) | named
        self.require(len(values) == len(names) == len(given) + len(named), f"arguments of {name}")
        self._steps.append(
            Launch(
                name,
                grid,
                block,
                kernel.dimensions,
                shared_bytes,
                len(setup) > 3,
                tuple(self._argument(p, values[p[0]]) for p in kernel.parameters),
            )
        )

    def _argument(self, parameter: tuple[str, str, str, int], value: Any) -> Any:
        name, kind, element, lanes = parameter
        if kind == "pointer":
            fits = element in ("void", "unknown", value.dtype) or (
                value.dtype in _BYTE_TYPES and element in ("uint8", "int8")
            )
            self.require(fits, f"{element} for {name}, not {value.dtype}")
            return self._position(value)
        if kind == "local":
            return getattr(torch, value.dtype).itemsize * lanes, value.elements // lanes
        return packed(element, value)

    def _operand(self, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(self._operand(item) for item in value)
        return Operand(self._position(value)) if isinstance(value, Buffer) else value

    def _position(self, buffer: Buffer) -> int:
        for position, known in enumerate(self._buffers):
            if known is buffer:
                return position
        self._buffers.append(buffer)
        return len(self._buffers) - 1


def packed(element: str, value: float) -> bytes:
    """Return the bytes of a number as a kernel takes it.

    Raises:
        NoKernelError: it does not fit the type.
    """
    try:
        if element == "bfloat16":
            bits = int(torch.tensor(value, dtype=torch.bfloat16).view(torch.int16).item())
            return struct.pack("<h", bits)
        if "int" in element and isinstance(value, float) and value.is_integer():
            value = int(value)
        return struct.pack(f"<{_FORMATS[element]}", value)
    except (struct.error, OverflowError) as error:
        raise NoKernelError(f"{value} is no {element}: {error}") from error


def cdiv(dividend: int, divisor: int) -> int:
    """Return the quotient, rounded up."""
    return -(-dividend // divisor)


def next_pow2(size: int) -> int:
    """Return the least power of two that is no smaller."""
    return 1 << max(size - 1, 0).bit_length()


def power(base: Any, exponent: Any) -> Any:
    """Return a power that fits 64 bits."""
    if isinstance(exponent, int) and exponent > 64 and abs(base) > 1:
        raise OverflowError(f"{base} ** {exponent}")
    return base**exponent


def positions(step: Step) -> set[int]:
    """Return the positions of the buffers that a step reads or writes."""
    if isinstance(step, Launch):
        return {argument for argument in step.arguments if type(argument) is int}
    if isinstance(step, Clear):
        return {step.buffer}
    return {step.output, *_operands((*step.arguments, *step.keywords.values()))}


def moved(step: Any, places: list[int]) -> Any:
    """Return a launch or a library call with other positions of its buffers."""

    def value(item: Any) -> Any:
        if isinstance(item, Operand):
            return Operand(places[item.buffer])
        return tuple(map(value, item)) if isinstance(item, tuple) else item

    if isinstance(step, Launch):
        arguments = tuple(places[a] if type(a) is int else a for a in step.arguments)
        return step._replace(arguments=arguments)
    return step._replace(
        arguments=tuple(map(value, step.arguments)),
        keywords={name: value(item) for name, item in step.keywords.items()},
        output=places[step.output],
    )


def _operands(values: tuple[Any, ...]) -> set[int]:
    found: set[int] = set()
    for value in values:
        if isinstance(value, Operand):
            found.add(value.buffer)
        elif isinstance(value, tuple):
            found |= _operands(value)
    return found


def _extent(value: Any) -> tuple[int, int, int]:
    sizes = value if isinstance(value, tuple) else (value,)
    if not all(isinstance(size, int) and size > 0 for size in sizes):
        raise NoKernelError(f"no launch has the sizes {sizes}")
    x, y, z = (*sizes, 1, 1)[:3]
    return int(x), int(y), int(z)


def _shaped(value: Any) -> Any:
    """A tensor of an operand's shape, without memory."""
    if isinstance(value, Buffer):
        return torch.empty(value.shape, dtype=getattr(torch, value.dtype), device="meta")
    return value
