"""A plan with copies in place of its kernels: what is right all the same, library calls compute.

Each launch becomes a copy into whatever it could write, from a tensor of the same size and type
that it is given, too. Where there are several, `choice` says which; what is filled already stays at
the first choice. Outputs, and what is filled, take only what a library call has had a part in.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kernel_foundry.plan.sequence import (
    BufferArgument,
    BufferSpec,
    Clear,
    Launch,
    LaunchSequence,
    LibraryCall,
    Step,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """Copy a buffer into another one of its size."""

    from_: int
    """Position in `LaunchSequence.buffers`."""
    to: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Copies:
    """A plan without its kernels."""

    steps: tuple[Step | Copy, ...]
    choice_count: int
    """How many copies the launch with the widest choice could become, at least 1."""


def copies_for_kernels(sequence: LaunchSequence, outputs: Sequence[str], *, choice: int) -> Copies:
    """Return the steps of `launch` with copies for kernels.

    Args:
        sequence: The bound plan.
        outputs: Names of the tensors that it has to fill.
        choice: From 0; 0 takes what was filled last.
    """
    filler = _Filler(sequence.buffers, outputs, choice)
    steps = [made for step in sequence.steps for made in filler.replaced(step)]
    return Copies(steps=tuple(steps), choice_count=filler.choice_count)


class _Filler:
    def __init__(
        self, buffers: tuple[BufferSpec, ...], outputs: Sequence[str], choice: int
    ) -> None:
        self._buffers = buffers
        self._choice = choice
        self._outputs = {
            i for i, b in enumerate(buffers) if b.kind == "tensor" and b.name in outputs
        }
        self._read_only = {
            i
            for i, buffer in enumerate(buffers)
            if buffer.kind in ("tensor", "prepared") and i not in self._outputs
        }
        self._filled = sorted(self._read_only)
        """In order."""
        self._computed: set[int] = set()
        """Those of them that a library call has had a part in."""
        self.choice_count = 1

    def replaced(self, step: Step) -> Iterator[Step | Copy]:
        match step:
            case Clear():
                yield step
            case LibraryCall():
                self._fill(step.output)
                self._computed.add(step.output)
                yield step
            case Launch():
                yield from self._copies(step)

    def _copies(self, launch: Launch) -> Iterator[Copy]:
        given = {a.index for a in launch.arguments if isinstance(a, BufferArgument)}
        known = [i for i in reversed(self._filled) if i in given]
        for target in sorted(given - self._read_only, key=lambda i: (i in known, i)):
            alike = [i for i in known if i != target and self._may_be(i, target)]
            sources = [target, *alike] if target in known else alike
            self.choice_count = max(self.choice_count, len(sources))
            source = sources[min(self._choice, len(sources) - 1)] if sources else target
            if source == target:
                continue
            self._fill(target)
            if source in self._computed:
                self._computed.add(target)
            size_bytes = self._buffers[target].size_bytes
            yield Copy(from_=source, to=target, size_bytes=size_bytes)

    def _may_be(self, source: int, target: int) -> bool:
        one, other = self._buffers[source], self._buffers[target]
        is_alike = (one.dtype, one.size_bytes) == (other.dtype, other.size_bytes)
        is_open = target not in self._outputs and target not in self._filled
        return is_alike and (source in self._computed or is_open)

    def _fill(self, position: int) -> None:
        if position in self._filled:
            self._filled.remove(position)
        self._filled.append(position)
