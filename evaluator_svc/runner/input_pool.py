"""The sets of inputs and outputs that are timed: more data than the cache, never the same twice.

Private copies as a rule, with fresh addresses. Where one set of device memory is beyond every
cache, the shared buffers themselves: copies of it would buy nothing, and may not fit. Knows
nothing of how times are taken.
"""

from typing import Any, Final, Protocol

from evaluator_svc.exchange import OUTPUT_SLOTS, TensorSlot
from evaluator_svc.runner.shared_sets import SharedSets

_MOST_SETS: Final = 64
"""Beyond this a pool of tiny tensors buys nothing: the flush empties the cache."""
_KEPT_SLOTS: Final = OUTPUT_SLOTS - 1
"""Output slots of a seed that outputs of timed calls are kept in; the last one is timed."""


class TimedSets(Protocol):
    """Sets of buffers; set i holds the inputs of seed i % seed_count."""

    shared: SharedSets
    set_count: int
    size_bytes: int

    def seed_of(self, index: int) -> int:
        """Return the seed whose inputs set `index` holds."""
        ...

    def addresses(self, index: int) -> dict[str, int]:
        """Return every tensor's address in set `index`, by name."""
        ...

    def set_aside(self, slots: list[TensorSlot], count: int) -> list[list[int]]:
        """Return addresses for the outputs of `count` calls whose sets are not yet known."""
        ...

    def keep(self, slots: list[TensorSlot], seeds: list[int]) -> None:
        """Move what was set aside, call by call, into output slots 0, 1, … of their seeds."""
        ...


def make_pool(device: Any, shared: SharedSets, *, wanted_bytes: int, limit_bytes: int) -> TimedSets:
    """Return the sets to time.

    Args:
        device: Native device that allocates.
        shared: Where the inputs come from.
        wanted_bytes: Data the pool should hold.
        limit_bytes: Data that private copies may hold; one set there always is.
    """
    if shared.is_device_memory and shared.set_bytes >= wanted_bytes:
        return SharedPool(device, shared)
    return InputPool(device, shared, wanted_bytes=wanted_bytes, limit_bytes=limit_bytes)


class InputPool:
    """Sets of private buffers.

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
        set_bytes = max(shared.set_bytes, 1)
        wanted = max(-(-wanted_bytes // set_bytes), shared.draw.seed_count, 2)
        self.set_count = max(min(wanted, limit_bytes // set_bytes, _MOST_SETS), 1)
        self.size_bytes = self.set_count * set_bytes
        self._sets: list[dict[str, Any]] = []
        self._aside: list[list[Any]] = []
        for index in range(self.set_count):
            self._sets.append(self._fill(index))

    def seed_of(self, index: int) -> int:
        """Return the seed whose inputs set `index` holds."""
        return index % self.shared.draw.seed_count

    def addresses(self, index: int) -> dict[str, int]:
        """Return every tensor's address in set `index`, by name."""
        return {name: int(buffer.address) for name, buffer in self._sets[index].items()}

    def set_aside(self, slots: list[TensorSlot], count: int) -> list[list[int]]:
        """Return addresses of memory beside the sets."""
        self._aside = [[self._spare(slot.size_bytes) for slot in slots] for _ in range(count)]
        return [[int(buffer.address) for buffer in kept] for kept in self._aside]

    def keep(self, slots: list[TensorSlot], seeds: list[int]) -> None:
        """Copy what was set aside into the shared buffers."""
        for position, seed in enumerate(seeds):
            for buffer, slot in zip(self._aside[position], slots, strict=True):
                target = self.shared.address(seed, slot, position)
                self._device.copy(to=target, from_=buffer.address, size_bytes=slot.size_bytes)
        self._device.synchronize()
        self._aside = []

    def _spare(self, size_bytes: int) -> Any:
        return self._device.allocate(max(size_bytes, 1))

    def _fill(self, index: int) -> dict[str, Any]:
        buffers = {}
        for slot in (*self.shared.inputs, *self.shared.outputs):
            buffer = self._spare(slot.size_bytes)
            if slot in self.shared.inputs and slot.size_bytes:
                source = self.shared.address(self.seed_of(index), slot, 0)
                self._device.copy(to=buffer.address, from_=source, size_bytes=slot.size_bytes)
            buffers[slot.name] = buffer
        return buffers


class SharedPool:
    """The shared buffers themselves, one set for each seed.

    Timed calls write into the last output slot alone; the others hold what is kept, out of reach
    of later calls and of their poison.

    Args:
        device: Native device that copies.
        shared: The buffers.
    """

    def __init__(self, device: Any, shared: SharedSets) -> None:
        self.shared = shared
        self._device = device
        self.set_count = shared.draw.seed_count
        self.size_bytes = self.set_count * shared.set_bytes

    def seed_of(self, index: int) -> int:
        """Return the seed whose inputs set `index` holds."""
        return index

    def addresses(self, index: int) -> dict[str, int]:
        """Return every tensor's address in set `index`, by name."""
        return self.shared.addresses(index, _KEPT_SLOTS)

    def set_aside(self, slots: list[TensorSlot], count: int) -> list[list[int]]:
        """Return addresses in the first seed's buffer: call i may use slot i of every seed."""
        assert count <= _KEPT_SLOTS, "a call that is kept has an output slot"
        return [
            [self.shared.address(0, slot, position) for slot in slots] for position in range(count)
        ]

    def keep(self, slots: list[TensorSlot], seeds: list[int]) -> None:
        """Copy from the first seed's slot to the same slot of the call's own seed."""
        for position, seed in enumerate(seeds):
            for slot in slots:
                source = self.shared.address(0, slot, position)
                target = self.shared.address(seed, slot, position)
                if source != target:
                    self._device.copy(to=target, from_=source, size_bytes=slot.size_bytes)
        self._device.synchronize()
