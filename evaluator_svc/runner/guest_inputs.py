"""Inputs of unusual values for calls among the timed ones, in the very sets that are timed.

They come from the judge's buffers of another draw, where the outputs of these calls go, too: a set
has them for one call, and its own again. When such calls are made is in `timing.py`.
"""

from collections.abc import Sequence
from typing import Any

from evaluator_svc.messages.draw import Draw, TensorSlot
from evaluator_svc.messages.measurement import GuestRows
from evaluator_svc.runner.covered import CoveredRange
from evaluator_svc.runner.input_pool import TimedSets
from evaluator_svc.runner.shared_sets import SharedSets
from evaluator_svc.runner.surroundings import Range


class GuestInputs:
    """A draw's buffers as guests in the sets of a pool.

    Args:
        device: Native device that allocates.
        draw: What lies where.
        descriptors: As of `SharedSets`.
    """

    def __init__(self, device: Any, draw: Draw, descriptors: tuple[int, ...]) -> None:
        self.draw = draw
        self._shared = SharedSets(draw, descriptors, device)
        self._aside = [device.allocate(max(slot.size_bytes, 1)) for slot in self._shared.inputs]
        """For a set's own inputs."""

    def guards(self) -> tuple[Range, ...]:
        """Return all bytes of device memory that no call may write and each could."""
        if not self._shared.is_device_memory:
            return ()
        return tuple(guard for each in self._shared.surroundings for guard in each.guards)

    def covered(self) -> tuple[CoveredRange, ...]:
        """Return all inputs and outputs, with those of a set that are aside."""
        aside = (
            (int(buffer.address), int(buffer.size_bytes), False, "an input")
            for buffer in self._aside
        )
        return (*aside, *self._shared.covered())

    def rows(
        self, pool: TimedSets, seeds: Sequence[int], outputs: Sequence[TensorSlot]
    ) -> GuestRows:
        """Return what the measuring loop lends to the sets of `pool`, in this order of seeds.

        Outputs go into the last slot: what an earlier run wrote stays in the first.
        """
        slots = {slot.name: slot for slot in self._shared.outputs}
        last = self.draw.slot_count - 1
        return (
            [(number, slot.size_bytes) for number, slot in enumerate(self._shared.inputs)],
            [
                [pool.addresses(index)[slot.name] for slot in self._shared.inputs]
                for index in range(pool.set_count)
            ],
            [[self._shared.address(s, slot, 0) for slot in self._shared.inputs] for s in seeds],
            [int(buffer.address) for buffer in self._aside],
            [[self._shared.address(s, slots[o.name], last) for o in outputs] for s in seeds],
        )

    def close(self) -> None:
        """Unmap the buffers."""
        self._shared.close()
        self._aside = []
