"""A plan bound to shapes on a device, and the memory of its calls."""

from collections.abc import Callable
from functools import partial, reduce
from operator import or_
from typing import Any, Final

import torch

from kernel_foundry.sdk.export.runtime.layouts import Layout, Layouts
from kernel_foundry.sdk.export.runtime.plan import (
    Buffer,
    Clear,
    Launch,
    LibraryCall,
    NoKernelError,
    Operand,
    Sequence,
    Step,
    moved,
    positions,
)
from kernel_foundry.sdk.export.runtime.scratch import Scratch
from kernel_foundry.sdk.export.runtime.tf32 import check_tf32

_WRITING: Final = (
    torch.nn.functional.linear,
    torch.matmul,
    torch.mm,
    torch.bmm,
    torch.addmm,
    torch.baddbmm,
)
"""Functions that write a result where they are told to."""


class BoundCall:
    """A plan bound to shapes, on a device.

    Its memory is a list of slots: the tensors that it takes, then the results, then the plan's own.

    Args:
        device: Where it runs.
        program: The loaded object code.
        sequence: What it does.
        layouts: What `prepare` made of weights before, for calls that share it.
        tensors: As they are given.
        names: Of the tensors.
        outputs: Name, shape and dtype of each output.
        is_deterministic: Whether repeated calls gave equal bits.
    """

    def __init__(
        self,
        device: Any,
        program: Any,
        sequence: Sequence,
        layouts: Layouts,
        tensors: list[torch.Tensor],
        names: tuple[str, ...],
        outputs: tuple[tuple[str, tuple[int, ...], str], ...],
        *,
        is_deterministic: bool,
    ) -> None:
        self.device = device
        """Where it runs."""
        self._misplaced = device.alignment - 1
        self._place = tensors[0].device
        self._names = names
        self._is_deterministic = is_deterministic
        self.layouts = layouts
        """What `prepare` made of weights."""
        self.outputs = tuple((shape, getattr(torch, dtype)) for _, shape, dtype in outputs)
        """Shape and dtype of each output."""
        self.makers = tuple(_new_tensor(*output, self._place) for output in self.outputs)
        """Of a new tensor for each result, on the current device."""
        self._buffers = _in_slots(sequence.buffers, (*names, *(name for name, _, _ in outputs)))
        slots = {id(buffer): slot for slot, buffer in enumerate(self._buffers)}
        self._slots = [slots[id(buffer)] for buffer in sequence.buffers]
        self._first_own = len(names) + len(outputs)
        own = list(enumerate(self._buffers))[self._first_own :]
        self._unset = [0] * len(own)
        self.prepared = [slot for slot, buffer in own if buffer.kind == "prepared"]
        """Slots of what `prepare` makes, in the order of a layout's places."""
        both = (*sequence.prepare, *sequence.steps)
        cleared = {self._slots[step.buffer] for step in both if isinstance(step, Clear)}
        self._cleared = sorted(cleared)
        self.scratch = Scratch([(s, b) for s, b in own if b.kind == "scratch"], cleared)
        """The plan's own memory for a call."""
        self.make_scratch = _new_tensor((self.scratch.bytes,), torch.uint8, self._place)
        """Makes that memory, on the current device."""
        self._prepare = self._parts(program, sequence.prepare)
        self.steps = self._parts(program, sequence.steps)
        """Rows of launches, and library calls between them."""
        library = [step for step in both if isinstance(step, LibraryCall)]
        self._has_library_calls = bool(library)
        is_rounded = not device.is_host
        self._rounded = [
            call
            for call in library
            if is_rounded and sequence.buffers[call.output].dtype == "float32"
        ]
        """Those that torch may round to TF32."""
        self.has_library = bool(library)
        """Whether it makes library calls."""
        self.has_settings = not is_deterministic or self.has_library
        """Whether `check_settings` may refuse any."""
        read = {self._slots[i] for step in sequence.prepare for i in positions(step)}
        self.laid_out = [slot for slot in range(len(names)) if slot in read]
        """Positions of the weights that `prepare` reads."""
        self.is_one_row = (
            not library
            and len(self.steps) == 1
            and bool(self.laid_out) == bool(self.prepared)
            and not self.scratch.cleared
            and not (device.is_host and self.scratch.places)
        )
        """Whether it is one row of launches, and its memory is used as it is found."""
        self.read = {
            i for step in sequence.steps for i in map(self._slots.__getitem__, positions(step))
        }
        """Slots that the steps read or write."""

    @property
    def alignment(self) -> int:
        """Bytes that addresses of tensors are a multiple of."""
        return int(self.device.alignment)

    def results(self, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        """Return new tensors with the results of inputs and weights.

        Raises:
            NoKernelError: a tensor does not begin where kernels expect it, or the device refuses.
        """
        if not self.device.is_current():
            with self.device.current():
                return self.results(tensors)
        addresses = [tensor.data_ptr() for tensor in tensors]
        if reduce(or_, addresses) & self._misplaced:
            self.check_addresses(addresses)
        results = [make() for make in self.makers]
        self.start(addresses, tensors, results)
        return results

    def run(self, tensors: list[torch.Tensor], results: list[torch.Tensor]) -> None:
        """Compute the results of inputs and weights, in the order of the schema."""
        if not self.device.is_current():
            with self.device.current():
                self.run(tensors, results)
                return
        self.start([tensor.data_ptr() for tensor in tensors], tensors, results)

    def new_results(self) -> list[torch.Tensor]:
        """Return new tensors for the results."""
        with self.device.current():
            return [make() for make in self.makers]

    def check_addresses(self, addresses: list[int]) -> None:
        """Refuse tensors that do not begin where kernels expect it.

        Raises:
            NoKernelError: one of them does not.
        """
        for name, address in zip(self._names, addresses, strict=True):
            if address & self._misplaced:
                raise NoKernelError(
                    f"{name} does not begin at a multiple of {self.alignment} bytes"
                )

    def check_settings(self) -> None:
        """Refuse settings of torch that kernels were not judged under.

        Raises:
            NoKernelError: there is one.
        """
        if not self._is_deterministic and torch.are_deterministic_algorithms_enabled():
            raise NoKernelError("the kernels do not give the same bits each time")
        if self.has_library and torch.is_autocast_enabled(self._place.type):
            raise NoKernelError("autocast is on, under which library calls give other types")
        check_tf32(self._rounded)

    def start(
        self, addresses: list[int], tensors: list[torch.Tensor], results: list[torch.Tensor]
    ) -> None:
        """Start a call whose device is the current one and whose tensors are where they have to be.

        Args:
            addresses: Of the tensors.
            tensors: Inputs and weights, in the order of the schema.
            results: Where the results will be.

        Raises:
            NoKernelError: the device refuses.
        """
        layout = self._layout_of(tensors, addresses) if self.prepared else None
        scratch = None
        if self.scratch.places:
            scratch = self.scratch.memory(self._place, is_kept=self.device.is_host)
        if self._has_library_calls:
            self._start_parts([*tensors, *results], layout, scratch)
            return
        addresses += [result.data_ptr() for result in results]
        addresses += self._unset
        if scratch is not None:
            base = scratch.data_ptr()
            for slot, offset, _ in self.scratch.places:
                addresses[slot] = base + offset
        if layout is not None:
            for slot, place in zip(self.prepared, layout.places, strict=True):
                addresses[slot] = place
        for row in self.steps:
            row.run(*addresses)

    def _start_parts(
        self, given: list[Any], layout: Layout | None, scratch: torch.Tensor | None
    ) -> None:
        memory = given + [None] * (len(self._buffers) - len(given))
        if layout is not None:
            for slot, tensor in zip(self.prepared, layout.made, strict=True):
                memory[slot] = tensor
        if scratch is not None:
            for slot, tensor in self.scratch.tensors(scratch):
                memory[slot] = tensor
        self._run_parts(self.steps, memory)

    def _run_parts(self, parts: list[Any], memory: list[Any]) -> None:
        for part in parts:
            if isinstance(part, LibraryCall):
                self._call_library(part, memory)
            else:
                part.run(*[0 if m is None else m.data_ptr() for m in memory])

    def _call_library(self, step: LibraryCall, memory: list[Any]) -> None:
        """Run one call; its result takes the place of the plan's own memory."""

        def value(item: Any) -> Any:
            if isinstance(item, Operand):
                return memory[item.buffer]
            return tuple(map(value, item)) if isinstance(item, tuple) else item

        arguments = [value(item) for item in step.arguments]
        keywords = {name: value(item) for name, item in step.keywords.items()}
        with torch.no_grad():
            if step.output >= self._first_own:
                memory[step.output] = step.function(*arguments, **keywords).contiguous()
            else:
                _write_result(step.function, arguments, keywords, memory[step.output])

    def _layout_of(self, tensors: list[torch.Tensor], addresses: list[int]) -> Layout:
        weights = [tensors[slot] for slot in self.laid_out]
        found = self.layouts.of(weights, [addresses[slot] for slot in self.laid_out])
        return found or self.layouts.keep(weights, self._lay_out(tensors))

    def _lay_out(self, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        memory: list[Any] = [*tensors, *[None] * len(self.outputs)]
        own = self._buffers[len(memory) :]
        memory += [
            torch.empty(b.shape, dtype=getattr(torch, b.dtype), device=self._place) for b in own
        ]
        for slot in self._cleared:
            memory[slot].zero_()
        self._run_parts(self._prepare, memory)
        return [memory[slot] for slot in self.prepared]

    def _parts(self, program: Any, steps: tuple[Step, ...]) -> list[Any]:
        """Rows of launches and library calls between them."""
        parts: list[Any] = []
        row: list[Launch] = []

        def end_row() -> None:
            if row:
                parts.append(self.device.bind(program, tuple(row), len(self._buffers)))
                row.clear()

        for step in steps:
            if isinstance(step, Launch):
                row.append(moved(step, self._slots))
            elif isinstance(step, LibraryCall):
                end_row()
                parts.append(moved(step, self._slots))
        end_row()
        return parts


def _in_slots(buffers: tuple[Buffer, ...], names: tuple[str, ...]) -> list[Buffer]:
    """All buffers of a call: a place for each named tensor, used or not, comes first."""
    by_name = {b.name: b for b in buffers if b.kind == "tensor"}
    named = [by_name[name] if name in by_name else Buffer("tensor", name, "", ()) for name in names]
    return [*named, *(b for b in buffers if b.kind != "tensor")]


def _new_tensor(
    shape: tuple[int, ...], dtype: torch.dtype, place: torch.device
) -> Callable[[], torch.Tensor]:
    """What makes a new tensor on the current device, in the quickest way that torch has."""
    # No public function: other releases may have another one.
    quick = getattr(torch._C._dynamo.guards, f"_empty_strided_{place.type}", None)
    if quick is None:
        return partial(torch.empty, shape, dtype=dtype, device=place)
    strides = torch.empty(shape, device="meta").stride()
    return partial(quick, shape, strides, dtype)


def _write_result(
    function: Callable[..., torch.Tensor],
    arguments: list[Any],
    keywords: dict[str, Any],
    out: torch.Tensor,
) -> None:
    if function not in _WRITING:
        out.copy_(function(*arguments, **keywords))
        return
    if function is torch.nn.functional.linear and arguments:
        # Of a matrix the product adds the bias, else torch does in a pass of its own.
        arguments[0], out = (t.view(-1, t.shape[-1]) for t in (arguments[0], out))
    function(*arguments, **keywords, out=out)
