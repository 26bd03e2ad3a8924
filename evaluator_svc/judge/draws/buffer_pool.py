"""Shared buffers that no draw uses at present, kept for the next draw of the same size.

Fresh shared pages cost more time than everything else in a draw.
"""

from collections.abc import Sequence

from evaluator_svc.judge.memory.judge_memory import JudgeMemory, SharedBuffer
from evaluator_svc.messages.placement import whole
from kernel_foundry.errors import DeviceMemoryError
from kernel_foundry_native import OutOfMemoryError


class BufferPool:
    """Idle shared buffers of one memory.

    Args:
        memory: Where they are made.
        limit_bytes: Most that is kept idle; the oldest are closed first. When new buffers are
            made, those in use count too.
    """

    def __init__(self, memory: JudgeMemory, limit_bytes: int) -> None:
        self._memory = memory
        self._limit_bytes = limit_bytes
        self._free: list[SharedBuffer] = []
        self._used_bytes = 0

    def take(self, size_bytes: int, *, count: int) -> list[SharedBuffer]:
        """Return buffers of `size_bytes` in whole units; their content is unspecified.

        Whoever maps one can write to all of it: all of it is the draw's to fill.

        Raises:
            DeviceMemoryError: there is no memory left.
        """
        taken: list[SharedBuffer] = []
        size_bytes = whole(size_bytes, self._memory.unit_bytes)
        try:
            taken += (self._take(size_bytes) for _ in range(count))
        except DeviceMemoryError:
            self.give(taken)
            raise
        return taken

    def _take(self, size_bytes: int) -> SharedBuffer:
        buffer = self._idle(size_bytes) or self._make(size_bytes)
        self._used_bytes += size_bytes
        return buffer

    def _idle(self, size_bytes: int) -> SharedBuffer | None:
        for index, buffer in enumerate(self._free):
            if buffer.size_bytes == size_bytes:
                return self._free.pop(index)
        return None

    def _make(self, size_bytes: int) -> SharedBuffer:
        # The idle ones are of other sizes, and a large draw needs their room.
        self._shrink(self._limit_bytes - self._used_bytes - size_bytes)
        try:
            return self._memory.share(size_bytes)
        except OutOfMemoryError:
            self.clear()
        try:
            return self._memory.share(size_bytes)
        except OutOfMemoryError as error:
            raise DeviceMemoryError(
                f"no memory for a shared buffer of {size_bytes / 1e9:.1f} GB: {error}",
                size_bytes=str(size_bytes),
            ) from error

    def give(self, buffers: Sequence[SharedBuffer]) -> None:
        """Take buffers back. No living process but this one may hold them."""
        self._used_bytes -= sum(buffer.size_bytes for buffer in buffers)
        self._free += buffers
        self._shrink(self._limit_bytes)

    def clear(self) -> None:
        """Close all that is idle."""
        self._shrink(0)

    def _shrink(self, limit_bytes: int) -> None:
        idle_bytes = sum(buffer.size_bytes for buffer in self._free)
        while self._free and idle_bytes > limit_bytes:
            idle_bytes -= self._free[0].size_bytes
            self._free.pop(0).close()
