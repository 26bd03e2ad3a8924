"""A bound plan as native code replays it: the flat sequence with its scratch memory.

Knows nothing of plans; `kernel_foundry.plan.sequence` is its input.
"""

from collections.abc import Mapping
from typing import Any

from evaluator_svc.locked_process import OpenDevice
from kernel_foundry.plan.sequence import (
    Argument,
    BufferArgument,
    Clear,
    Launch,
    LaunchSequence,
    LocalArgument,
)


class Replay:
    """A native launch sequence; sets of buffers are bound to it by number.

    Args:
        opened: The device.
        program: The loaded program that holds the kernels.
        sequence: What to launch.
    """

    def __init__(self, opened: OpenDevice, program: Any, sequence: LaunchSequence) -> None:
        self.module = opened.module
        self._buffers = sequence.buffers
        self._program = program
        # One scratch for all sets: the runs follow each other.
        self._scratch = {
            index: opened.device.allocate(max(buffer.size_bytes, 1))
            for index, buffer in enumerate(sequence.buffers)
            if buffer.kind == "scratch"
        }
        self.native = opened.module.LaunchSequence(opened.device)
        for step in sequence.steps:
            if isinstance(step, Clear):
                self.native.clear(step.buffer, step.size_bytes)
            else:
                self._add(step)

    def buffer_index(self, name: str) -> int | None:
        """Return the position of the tensor `name`, or None when no launch takes it."""
        for index, buffer in enumerate(self._buffers):
            if buffer.kind == "tensor" and buffer.name == name:
                return index
        return None

    def bind(self, index: int, addresses: Mapping[str, int]) -> None:
        """Let set `index` use the tensors at `addresses`, by name."""
        self.native.bind(
            index,
            [
                self._scratch[position].address if position in self._scratch
                else addresses[buffer.name]
                for position, buffer in enumerate(self._buffers)
            ],
        )  # fmt: skip

    def run(self, index: int) -> None:
        """Launch everything on set `index` and wait."""
        self.native.run(index)

    def _add(self, step: Launch) -> None:
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

    def _argument(self, argument: Argument) -> Any:
        if isinstance(argument, BufferArgument):
            return self.module.buffer_argument(argument.index, argument.offset_bytes)
        if isinstance(argument, LocalArgument):
            return self.module.local_argument(argument.element_bytes, argument.count)
        return self.module.scalar_argument(argument.ctype, argument.value)
