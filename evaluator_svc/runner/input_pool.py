"""The pool of private input sets that are timed: fresh addresses, more data than the cache.

Knows nothing of how times are taken.
"""

from typing import Any, Final

from evaluator_svc.exchange import ALIGNMENT_BYTES, TensorSlot
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
        """Return a private buffer beside the sets; it lives as long as it is referred to."""
        return self._device.allocate(max(size_bytes, 1))

    def keep(self, buffer: Any, seed: int, slot: TensorSlot, position: int) -> None:
        """Copy a private output into output slot `position` of a seed's shared buffer."""
        target = self.shared.address(seed, slot, position)
        self._device.copy(to=target, from_=buffer.address, size_bytes=slot.size_bytes)

    def _fill(self, index: int) -> dict[str, Any]:
        buffers = {}
        for slot in (*self.shared.inputs, *self.shared.outputs):
            buffer = self.spare(slot.size_bytes)
            if slot in self.shared.inputs and slot.size_bytes:
                source = self.shared.address(self.seed_of(index), slot, 0)
                self._device.copy(to=buffer.address, from_=source, size_bytes=slot.size_bytes)
            buffers[slot.name] = buffer
        return buffers


def _aligned(size_bytes: int) -> int:
    return -(-size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
