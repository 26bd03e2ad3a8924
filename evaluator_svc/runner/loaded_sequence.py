"""A bound plan on a device: its flat launch sequence with the sets of buffers bound to it.

Its input is `kernel_foundry.plan.sequence`.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from evaluator_svc.processes.locked_process import OpenDevice
from evaluator_svc.runner.copies_for_kernels import Copy
from evaluator_svc.runner.memory import PlanMemory
from evaluator_svc.runner.surroundings import Range
from kernel_foundry.plan.sequence import (
    Argument,
    BufferArgument,
    Clear,
    Launch,
    LibraryCall,
    LocalArgument,
    Step,
)

if TYPE_CHECKING:
    from evaluator_svc.runner.library_calls import LibraryCalls


class LoadedSequence:
    """A native launch sequence; sets of buffers are bound to it by number.

    Args:
        opened: The device.
        program: The loaded program that holds the kernels.
        steps: What to do, in order.
        memory: The plan's own memory.
        tf32: Whether library calls may use TF32.
    """

    def __init__(
        self,
        opened: OpenDevice,
        program: Any,
        steps: tuple[Step | Copy, ...],
        memory: PlanMemory,
        *,
        tf32: bool,
    ) -> None:
        self.module = opened.module
        self.steps = steps
        self._addresses: dict[int, list[int]] = {}
        self._memory = memory
        self.device = opened.device
        self._program = program
        self.library = _library(opened, steps, memory, tf32=tf32)
        """Makes the library calls; None without any."""
        self.native = opened.module.LaunchSequence(opened.device)
        for step in steps:
            self._add(step)

    @property
    def set_count(self) -> int:
        """Sets that are bound."""
        return len(self._addresses)

    @property
    def scratch(self) -> tuple[tuple[int, int], ...]:
        """(buffer, bytes) of scratch whose content is unspecified when a call begins."""
        return self._memory.scratch

    @property
    def prepared(self) -> tuple[tuple[int, int], ...]:
        """(buffer, bytes) of what `prepare` makes."""
        return self._memory.prepared

    def sealed_into(self, seed: int) -> list[int]:
        """Return where a copy of what was prepared of a seed's weights is kept, in that order."""
        return self._memory.sealed_into(seed)

    @property
    def guards(self) -> tuple[Range, ...]:
        """All bytes around the plan's own buffers."""
        return self._memory.guards

    @property
    def library_memory(self) -> Callable[[], tuple[tuple[int, int], ...]] | None:
        """Returns (address, bytes) of what libraries hold by then; None where they hold nothing."""
        if self.library is None or self.device.is_host_memory:
            return None
        return self.library.memory

    def buffer_index(self, name: str) -> int | None:
        """Return the position of the tensor `name`, or None when no step takes it."""
        for index, buffer in enumerate(self._memory.buffers):
            if buffer.kind == "tensor" and buffer.name == name:
                return index
        return None

    def bind(self, index: int, tensors: Mapping[str, int], *, seed: int) -> None:
        """Let set `index`, the next or an earlier one, use tensors by name.

        Args:
            index: Number of the set.
            tensors: Addresses.
            seed: Whose weights these are.
        """
        addresses = self._memory.addresses(tensors, seed)
        self.native.bind(index, addresses)
        if self.library is not None:
            self.library.bind(index, addresses)
        self._addresses[index] = addresses

    def addresses(self, index: int) -> list[int]:
        """Return the address of every buffer of a set, as bound."""
        return self._addresses[index]

    def run(self, index: int) -> None:
        """Scrub what is left of the last call, do everything on set `index` and wait."""
        self.scrub()
        self.native.run(index)

    def scrub(self) -> None:
        """Overwrite all that a call before could have left something in, but tensors."""
        self._memory.scrub(() if self.library is None else self.library.memory())

    def forget_results(self) -> None:
        """Give the memory of library calls' results back."""
        if self.library is not None:
            self.library.forget_results()

    def _add(self, step: Step | Copy) -> None:
        match step:
            case Clear():
                self.native.clear(step.buffer, step.size_bytes)
            case Copy():
                self.native.call(partial(self._copy, step), -1)
            case Launch():
                self._add_launch(step)
            case LibraryCall():
                assert self.library is not None, "a sequence with library calls has a library"
                is_new = self.library.makes_memory(step)
                self.native.call(self.library.step(step), step.output if is_new else -1)

    def _add_launch(self, step: Launch) -> None:
        self.native.launch(
            program=self._program,
            kernel=step.kernel,
            grid=step.grid,
            block=step.block,
            arguments=[self._argument(argument) for argument in step.arguments],
            dimensions=step.dimensions,
            shared_bytes=step.shared_bytes,
            cooperative=step.cooperative,
        )

    def _copy(self, step: Copy, _index: int) -> int:
        addresses = self.native.last_addresses  # with the results of the calls before
        self.device.copy(
            to=addresses[step.to], from_=addresses[step.from_], size_bytes=step.size_bytes
        )
        return 0

    def _argument(self, argument: Argument) -> Any:
        if isinstance(argument, BufferArgument):
            return self.module.buffer_argument(argument.index)
        if isinstance(argument, LocalArgument):
            return self.module.local_argument(argument.element_bytes, argument.count)
        return self.module.scalar_argument(argument.ctype, argument.value)


def _library(
    opened: OpenDevice, steps: tuple[Step | Copy, ...], memory: PlanMemory, *, tf32: bool
) -> "LibraryCalls | None":
    if not any(isinstance(step, LibraryCall) for step in steps):
        return None
    # Only with such calls: it imports torch, which other runners never load.
    from evaluator_svc.runner.library_calls import LibraryCalls

    return LibraryCalls(opened.device, opened.index, memory.buffers, tf32=tf32)
