"""The pool of private input sets that are timed: fresh addresses, more data than the cache.

Knows nothing of how times are taken.
"""

from typing import Any, Final

from evaluator_svc.exchange import ALIGNMENT_BYTES
from evaluator_svc.runner.shared_sets import SharedSets

_MOST_SETS: Final = 64
"""Beyond this a pool of tiny tensors buys nothing: the flush empties the cache."""


class InputPool:
    """Sets of private buffers; set i holds the inputs of seed i % seed_count.

    Args:
        device: Native device that allocates.
        shared: Where the inputs come from.
        wanted_bytes: Data the pool should hold.
        limit_bytes: Data it may hold; one set there always is.
    """

    def __init__(
        self, device: Any, shared: SharedSets, *, wanted_bytes: int, limit_bytes: int
    ) -> None:
        self.shared = shared
        self._device = device
        slots = (*shared.inputs, *shared.outputs)
        set_bytes = max(sum(_aligned(slot.size_bytes) for slot in slots), 1)
        wanted = max(-(-wanted_bytes // set_bytes), shared.draw.seed_count, 2)
        self.set_count = max(min(wanted, limit_bytes // set_bytes, _MOST_SETS), 1)
        self.size_bytes = self.set_count * set_bytes
        self._sets: list[dict[str, Any]] = []
        for index in range(self.set_count):
            self._sets.append(self._fill(index))

    def seed_of(self, index: int) -> int:
        """Return the seed whose inputs set `index` holds."""
        return index % self.shared.draw.seed_count

    def addresses(self, index: int) -> dict[str, int]:
        """Return every tensor's address in set `index`, by name."""
        return {name: int(buffer.address) for name, buffer in self._sets[index].items()}

    def spare(self, size_bytes: int) -> Any:
        """Return a private buffer beside the sets; the caller releases it."""
        return self._device.allocate(max(size_bytes, 1))

    def release(self) -> None:
        """Give the memory back."""
        for buffers in self._sets:
            for buffer in buffers.values():
                buffer.release()

    def _fill(self, index: int) -> dict[str, Any]:
        buffers = {}
        for slot in (*self.shared.inputs, *self.shared.outputs):
            buffer = self.spare(slot.size_bytes)
            if slot in self.shared.inputs and slot.size_bytes:
                source = self.shared.address(self.seed_of(index), slot, 0)
                buffer.copy_from(source, slot.size_bytes)
            buffers[slot.name] = buffer
        return buffers


def _aligned(size_bytes: int) -> int:
    return -(-size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
