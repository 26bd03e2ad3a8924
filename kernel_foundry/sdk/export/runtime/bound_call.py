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
from kernel_foundry.sdk.export.runtime.task import (
    DETERMINISTIC,
    INPUTS,
    OUTPUTS,
    WORKLOADS,
)
from kernel_foundry.sdk.export.runtime.tf32 import check_tf32

NAMES: Final = (*INPUTS, *WORKLOADS[0]["weights"])
"""Of the tensors of a call: inputs and weights, in order."""


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
        layouts: Layouts,
        tensors: list[torch.Tensor],
        outputs: tuple[tuple[tuple[int, ...], str], ...],
    ) -> None:
        self.device = device
        """Where it runs."""
        self._misplaced = device.alignment - 1
        self._place = tensors[0].device
        self.layouts = layouts
        """What `prepare` made of weights."""
        self.outputs = tuple((shape, getattr(torch, dtype)) for shape, dtype in outputs)
        self.makers = tuple(_new_tensor(*output, self._place) for output in self.outputs)
        """Of a new tensor for each result, on the current device."""
        self._buffers = _in_slots(sequence.buffers)
        slots = {id(buffer): slot for slot, buffer in enumerate(self._buffers)}
        self._slots = [slots[id(buffer)] for buffer in sequence.buffers]
        first = len(NAMES) + len(OUTPUTS)
        own = list(enumerate(self._buffers))[first:]
        self._unset = [0] * len(own)
        self._prepared = [slot for slot, buffer in own if buffer.kind == "prepared"]
        both = (*sequence.prepare, *sequence.steps)
        cleared = {self._slots[step.buffer] for step in both if isinstance(step, Clear)}
        self._cleared = sorted(cleared)
        self._scratch = Scratch([(s, b) for s, b in own if b.kind == "scratch"], cleared)
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
        self.has_settings = not DETERMINISTIC or bool(library)
        """Whether `check_settings` may refuse any."""
        read = {self._slots[i] for step in sequence.prepare for i in positions(step)}
        self.laid_out = [slot for slot in range(len(NAMES)) if slot in read]
        """Positions of the weights that `prepare` reads."""
        is_laid_out = bool(self.laid_out) and len(own) == len(self._prepared)
        self.is_one_row = not library and len(self.steps) == 1 and (is_laid_out or not own)
        """Whether it is one row of launches, on tensors of the schema and layouts alone."""

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
        for name, address in zip(NAMES, addresses, strict=True):
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
        layout = self._layout_of(tensors, addresses) if self._prepared else None
        scratch = None
        if self._scratch.places:
            scratch = self._scratch.memory(self._place, is_kept=self.device.is_host)
        if self._has_library_calls:
            self._start_parts([*tensors, *results], layout, scratch)
            return
        addresses += [result.data_ptr() for result in results]
        addresses += self._unset
        if scratch is not None:
            base = scratch.data_ptr()
            for slot, offset, _ in self._scratch.places:
                addresses[slot] = base + offset
        if layout is not None:
            for slot, place in zip(self._prepared, layout.places, strict=True):
                addresses[slot] = place
        for row in self.steps:
            row.run(*addresses)

    def _start_parts(
        self, given: list[Any], layout: Layout | None, scratch: torch.Tensor | None
    ) -> None:
        memory = given + [None] * (len(self._buffers) - len(given))
        if layout is not None:
            for slot, tensor in zip(self._prepared, layout.made, strict=True):
                memory[slot] = tensor
        if scratch is not None:
            for slot, tensor in self._scratch.tensors(scratch):
                memory[slot] = tensor
        self._run_parts(self.steps, memory)

    def _run_parts(self, parts: list[Any], memory: list[Any]) -> None:
        for part in parts:
            if isinstance(part, LibraryCall):
                _call_library(part, memory)
            else:
                part.run(*[0 if m is None else m.data_ptr() for m in memory])

    def _layout_of(self, tensors: list[torch.Tensor], addresses: list[int]) -> Layout:
        weights = [tensors[slot] for slot in self.laid_out]
        found = self.layouts.of(weights, [addresses[slot] for slot in self.laid_out])
        return found or self.layouts.keep(weights, self._lay_out(tensors))

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


def _in_slots(buffers: tuple[Buffer, ...]) -> list[Buffer]:
    """All buffers of a call: a place for each tensor of the schema, used or not, comes first."""
    by_name = {b.name: b for b in buffers if b.kind == "tensor"}
    named = [
        by_name[name] if name in by_name else Buffer("tensor", name, "", ())
        for name in (*NAMES, *OUTPUTS)
    ]
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
