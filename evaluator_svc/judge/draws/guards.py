"""Guards of a shared buffer: the bytes around its tensors, which no candidate may write.

A kernel that writes past a tensor's end overwrites what belongs to others, or keeps
something there for its next call.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from evaluator_svc.judge.memory.judge_memory import JudgeMemory, SharedBuffer
from evaluator_svc.messages.draw import TensorSlot


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """A stretch of bytes that must stay as they are."""

    start: int
    end: int
    behind: str
    """Name of the tensor that ends where it begins; before the first one that one's name."""


def guards_of(slots: Sequence[TensorSlot], size_bytes: int) -> tuple[Guard, ...]:
    """Return all bytes of a buffer that belong to no tensor, in order."""
    places = sorted(
        (offset, offset + slot.size_bytes, slot.name) for slot in slots for offset in slot.offsets
    )
    starts = [*(start for start, _, _ in places), size_bytes]
    first = Guard(start=0, end=starts[0], behind=places[0][2])
    rest = (
        Guard(start=end, end=following, behind=name)
        for (_, end, name), following in zip(places, starts[1:], strict=True)
    )
    return tuple(guard for guard in (first, *rest) if guard.end > guard.start)


class GuardedBuffer:
    """A buffer whose guards hold one byte.

    Args:
        memory: Where it lies.
        buffer: The buffer.
        guards: Its guards.
        byte: What they hold: fresh for each draw, so that no kernel can write what is there.
    """

    def __init__(
        self, memory: JudgeMemory, buffer: SharedBuffer, guards: tuple[Guard, ...], byte: int
    ) -> None:
        self._memory = memory
        self._buffer = buffer
        self._guards = guards
        self._byte = byte

    @property
    def guard_bytes(self) -> int:
        """Bytes of all guards."""
        return sum(guard.end - guard.start for guard in self._guards)

    def write(self) -> None:
        """Fill the guards."""
        for guard in self._guards:
            address = self._buffer.address + guard.start
            self._memory.fill(address, guard.end - guard.start, self._byte)

    def touched(self) -> tuple[str, ...]:
        """Return the names of tensors whose guards were written."""
        self._memory.synchronize()
        parts = [self._part(guard) for guard in self._guards]
        # All at once: on a device every question costs a wait.
        if bool(torch.cat(parts).eq(self._byte).all()):
            return ()
        names = [
            guard.behind
            for guard, part in zip(self._guards, parts, strict=True)
            if not bool(part.eq(self._byte).all())
        ]
        return tuple(dict.fromkeys(names))

    def _part(self, guard: Guard) -> torch.Tensor:
        return self._memory.bytes_of(self._buffer, guard.start, guard.end - guard.start)
