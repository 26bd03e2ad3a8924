"""The sets of inputs and outputs that are timed: more data than the cache, never the same twice.

Private copies as a rule, with fresh addresses, and laid out and guarded as the shared buffers are:
no address tells a timed call from one that is compared. Where one set of device memory is beyond
every cache, the shared buffers themselves: its copies would change no time, and may not fit. What
the judge is to see of private copies goes back into the shared buffers: outputs that are kept, and
inputs that a kernel could have written. What lies around private copies is looked at here.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol

from evaluator_svc.messages.draw import POISON_BYTE, TensorSlot
from evaluator_svc.messages.placement import whole
from evaluator_svc.runner.covered import CoveredRange
from evaluator_svc.runner.shared_sets import SharedSets
from evaluator_svc.runner.surroundings import Range, Surroundings

_MOST_SETS: Final = 16
"""Beyond this a pool of tiny tensors buys nothing: the flush empties the cache. On a GPU each holds
an allocation unit at least, which is filled before every call."""


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

    def guards(self) -> tuple[Range, ...]:
        """Return all bytes that no timed call may write and each could."""
        ...

    def idle_outputs(self, *, but_last: bool) -> tuple[Range, ...]:
        """Return outputs that hold nothing while times are taken, and that any call could write.

        `but_last`: the last slots hold something.
        """
        ...

    def check(self) -> None:
        """See that no timed call wrote around a set.

        Raises:
            CandidateFaultError: one did.
        """
        ...

    def covered(self) -> tuple[CoveredRange, ...]:
        """Return all inputs and outputs, with what is set aside and the shared buffers'."""
        ...

    def set_aside(self, slots: list[TensorSlot], count: int) -> list[list[int]]:
        """Return addresses for the outputs of `count` calls whose sets are not yet known."""
        ...

    def keep(self, slots: list[TensorSlot], sets: list[int]) -> None:
        """Move what was set aside, call by call, into output slots 0, 1, … of their sets' seeds."""
        ...

    def refresh(self, index: int) -> None:
        """Take set `index`'s inputs from the shared buffers again, and poison its outputs."""
        ...

    def hand_back(self, index: int, slot: int, outputs: Mapping[str, int]) -> None:
        """Copy outputs of set `index`, by name, into an output slot of its seed.

        Inputs that kernels could write go with them.
        """
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
        self._sets: list[Any] = []
        """One buffer each: a set for itself lies as one of the shared sets does."""
        self._surroundings: list[Surroundings] = []
        self._aside: list[list[Any]] = []
        for index in range(self.set_count):
            self._sets.append(self._spare(whole(shared.layout_bytes, device.unit_bytes)))
            self._surroundings.append(self._surround(index))
            self.refresh(index)

    def seed_of(self, index: int) -> int:
        """Return the seed whose inputs set `index` holds."""
        return index % self.shared.draw.seed_count

    def addresses(self, index: int) -> dict[str, int]:
        """Return every tensor's address in set `index`, by name."""
        return {slot.name: self._address(index, slot) for slot in self.shared.draw.slots}

    def guards(self) -> tuple[Range, ...]:
        """Return what lies around the tensors of all sets; on a GPU of the shared buffers, too."""
        own = tuple(guard for each in self._surroundings for guard in each.guards)
        if not self.shared.is_device_memory:
            return own
        shared = tuple(guard for each in self.shared.surroundings for guard in each.guards)
        return (*own, *shared)

    def idle_outputs(self, *, but_last: bool) -> tuple[Range, ...]:
        """Return those of the shared buffers: what is kept goes there later."""
        if not self.shared.is_device_memory:
            return ()
        return self.shared.output_ranges(but_last=but_last)

    def check(self) -> None:
        """See that no timed call wrote around a set."""
        for surroundings in self._surroundings:
            surroundings.check()

    def covered(self) -> tuple[CoveredRange, ...]:
        """Return all inputs and outputs, with what is set aside and the shared buffers'."""
        own = (
            each
            for buffer in self._sets
            for each in self.shared.covered_at(int(buffer.address), copies=1)
        )
        return (*own, *_all_of(self._aside), *self.shared.covered())

    def set_aside(self, slots: list[TensorSlot], count: int) -> list[list[int]]:
        """Return addresses of memory beside the sets."""
        self._aside = [[self._spare(slot.size_bytes) for slot in slots] for _ in range(count)]
        return [[int(buffer.address) for buffer in kept] for kept in self._aside]

    def keep(self, slots: list[TensorSlot], sets: list[int]) -> None:
        """Copy what was set aside into the shared buffers."""
        for position, index in enumerate(sets):
            kept = zip(slots, self._aside[position], strict=True)
            outputs = {slot.name: int(buffer.address) for slot, buffer in kept}
            self.hand_back(index, position, outputs)
        self._aside = []

    def refresh(self, index: int) -> None:
        """Take set `index`'s inputs from the shared buffers again, and poison its outputs."""
        seed = self.seed_of(index)
        for slot in self.shared.inputs:
            source = self.shared.address(seed, slot, 0)
            self._copy(self._address(index, slot), source, slot.size_bytes)
        for slot in self.shared.outputs:
            self._device.fill(self._address(index, slot), slot.size_bytes, POISON_BYTE)

    def hand_back(self, index: int, slot: int, outputs: Mapping[str, int]) -> None:
        """Copy outputs, and inputs that kernels could write, into the shared buffer of its seed."""
        seed = self.seed_of(index)
        for tensor in self.shared.inputs if self.shared.is_device_memory else ():
            target, source = self.shared.address(seed, tensor, 0), self._address(index, tensor)
            self._copy(target, source, tensor.size_bytes)
        for tensor in self.shared.outputs:
            if tensor.name in outputs:
                target = self.shared.address(seed, tensor, slot)
                self._copy(target, outputs[tensor.name], tensor.size_bytes)
        self._device.synchronize()

    def _spare(self, size_bytes: int) -> Any:
        return self._device.allocate(max(size_bytes, 1))

    def _address(self, index: int, tensor: TensorSlot) -> int:
        return int(self._sets[index].address) + tensor.offsets[0]

    def _copy(self, to: int, from_: int, size_bytes: int) -> None:
        if size_bytes:
            self._device.copy(to=to, from_=from_, size_bytes=size_bytes)

    def _surround(self, index: int) -> Surroundings:
        surroundings = Surroundings(
            self._device,
            address=int(self._sets[index].address),
            size_bytes=whole(self.shared.layout_bytes, self._device.unit_bytes),
            places=self.shared.places(copies=1),
            byte=self.shared.guard_byte,
        )
        surroundings.write()
        return surroundings


class SharedPool:
    """The shared buffers themselves, one set for each seed.

    Timed calls write into the last output slot alone; the others hold what is kept, out of reach
    of later calls and of their poison. Where there are no others, memory beside the buffers does
    until the last call is over.

    Args:
        device: Native device that copies.
        shared: The buffers.
    """

    def __init__(self, device: Any, shared: SharedSets) -> None:
        self.shared = shared
        self._device = device
        self.set_count = shared.draw.seed_count
        self.size_bytes = self.set_count * shared.set_bytes
        self._timed_slot = shared.draw.slot_count - 1
        self._aside: list[list[Any]] = []

    def seed_of(self, index: int) -> int:
        """Return the seed whose inputs set `index` holds."""
        return index

    def addresses(self, index: int) -> dict[str, int]:
        """Return every tensor's address in set `index`, by name."""
        return self.shared.addresses(index, self._timed_slot)

    def guards(self) -> tuple[Range, ...]:
        """Return what lies around the tensors of the shared buffers."""
        return tuple(guard for each in self.shared.surroundings for guard in each.guards)

    def idle_outputs(self, *, but_last: bool) -> tuple[Range, ...]:
        """Return none: the slots that are not timed hold what is kept."""
        return ()

    def check(self) -> None:
        """Left to the judge, whose buffers these are."""

    def covered(self) -> tuple[CoveredRange, ...]:
        """Return all inputs and outputs, with what is set aside."""
        return (*_all_of(self._aside), *self.shared.covered())

    def set_aside(self, slots: list[TensorSlot], count: int) -> list[list[int]]:
        """Return addresses in the first seed's buffer: call i may use slot i of every seed.

        Beside it, where the one slot is the timed one.
        """
        if self._timed_slot == 0:
            self._aside = [
                [self._device.allocate(max(slot.size_bytes, 1)) for slot in slots]
                for _ in range(count)
            ]
            return [[int(buffer.address) for buffer in kept] for kept in self._aside]
        assert count <= self._timed_slot, "a call that is kept has an output slot"
        return [
            [self.shared.address(0, slot, position) for slot in slots] for position in range(count)
        ]

    def keep(self, slots: list[TensorSlot], sets: list[int]) -> None:
        """Copy from where it was set aside to the same slot of the call's own seed."""
        for position, seed in enumerate(sets):
            outputs = {slot.name: self.shared.address(0, slot, position) for slot in slots}
            if self._aside:
                kept = zip(slots, self._aside[position], strict=True)
                outputs = {slot.name: int(buffer.address) for slot, buffer in kept}
            self.hand_back(seed, position, outputs)
        self._aside = []

    def refresh(self, index: int) -> None:
        """Poison the outputs; the inputs are the shared ones."""
        for slot in self.shared.outputs:
            target = self.shared.address(index, slot, self._timed_slot)
            self._device.fill(target, slot.size_bytes, POISON_BYTE)

    def hand_back(self, index: int, slot: int, outputs: Mapping[str, int]) -> None:
        """Copy outputs into another slot; all that lies around them is there already."""
        for tensor in self.shared.outputs:
            source = outputs.get(tensor.name)
            target = self.shared.address(index, tensor, slot)
            if source is not None and source != target and tensor.size_bytes:
                self._device.copy(to=target, from_=source, size_bytes=tensor.size_bytes)
        self._device.synchronize()


def _all_of(buffers: list[list[Any]]) -> Iterator[CoveredRange]:
    for kept in buffers:
        for buffer in kept:
            yield int(buffer.address), int(buffer.size_bytes), False, "an output"
