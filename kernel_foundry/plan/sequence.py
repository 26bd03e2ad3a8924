"""The flat launch sequence: what a bound plan is, and all that native code needs to replay it.

Pure data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferSpec:
    """One buffer of a sequence: a tensor of the name table, or scratch."""

    kind: Literal["tensor", "scratch", "prepared", "result"]
    """Of the name table; scratch; filled by `prepare` once for each set of weights; made anew by a
    library call, which decides its address."""
    name: str
    """Name in the name table; `scratch0`…, `prepared0`…, `result0`… else."""
    dtype: str
    """Canonical dtype name."""
    shape: tuple[int, ...]
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferArgument:
    """A pointer argument."""

    index: int
    """Position in `LaunchSequence.buffers`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarArgument:
    """A number argument, known to fit its type."""

    ctype: str
    """Canonical type of the declared parameter."""
    value: int | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalArgument:
    """Work-group local memory behind a SYCL local accessor."""

    element_bytes: int
    count: int


Argument: TypeAlias = BufferArgument | ScalarArgument | LocalArgument


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One kernel launch."""

    kernel: str
    grid: tuple[int, int, int]
    """Blocks (work-groups) in x, y, z."""
    block: tuple[int, int, int]
    """Threads (work-items) of a block in x, y, z."""
    dimensions: int
    """Dimensions of the kernel; the rest of grid and block is 1."""
    shared_bytes: int
    """Dynamic shared memory (CUDA); 0 in SYCL."""
    cooperative: bool
    arguments: tuple[Argument, ...]
    """In the order of the kernel's parameters."""
    line: int
    """1-based line in the plan text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clear:
    """Fill a buffer with zero bytes, at every run."""

    buffer: int
    """Position in `LaunchSequence.buffers`."""
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorOperand:
    """A tensor given to a library call."""

    index: int
    """Position in `LaunchSequence.buffers`."""
    shape: tuple[int, ...]
    """As the call sees it; the buffer's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryCall:
    """One `ops.` call: torch.nn.functional semantics, run by the evaluator on the same stream."""

    op: str
    """Name after `ops.`, such as "conv2d"."""
    arguments: tuple[Operand, ...]
    keywords: tuple[tuple[str, Operand], ...]
    """Without `out`."""
    output: int
    """Position of the buffer that holds the result: a "result" buffer; or, with `out=` and for what
    `prepare` hands to `launch`, one whose address is known before."""
    line: int
    """1-based line in the plan text."""


Operand: TypeAlias = TensorOperand | int | float | bool | str | tuple["Operand", ...] | None
"""A value given to a library call."""

Step: TypeAlias = Launch | Clear | LibraryCall


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSequence:
    """A plan bound to one workload, configuration and device."""

    buffers: tuple[BufferSpec, ...]
    steps: tuple[Step, ...]
    """Run in order; each sees the results of those before it."""
    prepare: tuple[Step, ...] = ()
    """Run once for each set of weights, before `steps`; fills the "prepared" buffers."""

    @property
    def kernels(self) -> tuple[str, ...]:
        """Names of the kernels launched, in order of first use."""
        steps = (*self.prepare, *self.steps)
        launched = (step.kernel for step in steps if isinstance(step, Launch))
        return tuple(dict.fromkeys(launched))

    @property
    def scratch_bytes(self) -> int:
        """Bytes of all scratch buffers."""
        return sum(buffer.size_bytes for buffer in self.buffers if buffer.kind == "scratch")

    @property
    def prepared_bytes(self) -> int:
        """Bytes of what `prepare` hands to `launch`."""
        return sum(buffer.size_bytes for buffer in self.buffers if buffer.kind == "prepared")

    @property
    def library_calls(self) -> tuple[LibraryCall, ...]:
        """The library calls of both parts; with none, no library needs to be loaded."""
        steps = (*self.prepare, *self.steps)
        return tuple(step for step in steps if isinstance(step, LibraryCall))
