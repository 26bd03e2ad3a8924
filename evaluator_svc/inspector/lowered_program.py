"""Object code in one form for both languages: what analyses have to know of each instruction.

`from_ptx.lower` and `from_spirv.lower` make it from what the readers give.
"""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final, Generic, TypeVar

from evaluator_svc.behaviour import Scope
from evaluator_svc.inspector.control_flow import Loop

InstructionT = TypeVar("InstructionT")
"""An instruction, as its reader gives it."""


class Space(Enum):
    """A kind of memory."""

    GLOBAL = auto()
    GROUP = auto()
    """Memory of a work-group: SYCL's local memory, CUDA's shared memory."""
    PRIVATE = auto()
    """Memory of a work-item: CUDA's local memory."""
    GENERIC = auto()
    """Any of these: only the address tells."""
    OTHER = auto()
    """Parameters, constants, inputs."""


FAR: Final = (Space.GLOBAL, Space.GENERIC)
"""Where global data is: a generic address that nothing more is known of is taken for one."""
NOWHERE: Final[frozenset[Space]] = frozenset()
EVERYWHERE: Final = frozenset(Space)


@dataclass(frozen=True, slots=True)
class Operation(Generic[InstructionT]):
    """The effects of one instruction beside its result."""

    instruction: InstructionT
    """With its operands and results."""
    reads: frozenset[Space] = NOWHERE
    """Memory that it surely reads."""
    writes: frozenset[Space] = NOWHERE
    """Memory that it may write."""
    atomic: Space | None = None
    """Memory that an atomic changes."""
    barrier: Scope | None = None
    """Who waits for whom here."""
    group: Scope | None = None
    """Among whom values are reduced or exchanged."""
    moves_ahead: bool = False
    """An asynchronous copy or a prefetch."""
    is_matrix_product: bool = False
    """On matrix units."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Body(Generic[InstructionT]):
    """A function: its operations, and the blocks that control goes through."""

    name: Any
    """Its key among the module's functions."""
    operations: tuple[Operation[InstructionT], ...]
    """All of them, in order."""
    blocks: Mapping[int, tuple[Operation[InstructionT], ...]]
    """By number, none of which is 0; the first is where the function begins."""
    successors: Mapping[int, tuple[int, ...]]
    """Blocks that may follow each block."""
    loops: tuple[Loop, ...]

    def around(self, block: int) -> tuple[Loop, ...]:
        """Return the loops that a block is in, outermost first."""
        found = (loop for loop in self.loops if block in loop.blocks)
        return tuple(sorted(found, key=lambda loop: -len(loop.blocks)))

    def instructions(self, block: int) -> Iterator[InstructionT]:
        """Iterate over the instructions of a block; over none when there is no such block."""
        for operation in self.blocks.get(block, ()):
            yield operation.instruction


@dataclass(frozen=True, slots=True, kw_only=True)
class LoweredProgram(Generic[InstructionT]):
    """A kernel, and all functions that it reaches."""

    kernels: tuple[Body[InstructionT], ...]
    mains: tuple[Body[InstructionT], ...]
    """For each kernel where its work is done: its own body, or that of the one function that an
    entry point calls which touches no memory of the group itself."""
    functions: Mapping[Hashable, Body[InstructionT]]
    """By name: the kernels and the functions that they call, each once."""
