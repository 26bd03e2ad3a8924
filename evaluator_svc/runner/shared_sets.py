"""The judge's shared buffers as a runner sees them: one for each seed, inputs and output slots.

Inputs are mapped writable, so that a kernel that changes them is found out and not ended.
Knows nothing of what the outputs should be.
"""

import os
from typing import Any

from evaluator_svc.exchange import Draw, TensorSlot
from kernel_foundry.domain.admission import TensorRole


class SharedSets:
    """A draw's buffers, mapped.

    Args:
        draw: What lies where.
        descriptors: One descriptor for each seed; closed once the buffers are mapped.
    """

    def __init__(self, draw: Draw, descriptors: tuple[int, ...]) -> None:
        from kernel_foundry_native import _core

        self.draw = draw
        self._buffers: list[Any] = [
            _core.SharedBuffer.open(descriptor, draw.size_bytes) for descriptor in descriptors
        ]
        for descriptor in descriptors:
            os.close(descriptor)

    @property
    def inputs(self) -> tuple[TensorSlot, ...]:
        """Slots of all that a candidate reads."""
        return tuple(s for s in self.draw.slots if s.role != TensorRole.OUTPUT.value)

    @property
    def outputs(self) -> tuple[TensorSlot, ...]:
        """Slots of all that a candidate writes."""
        return tuple(s for s in self.draw.slots if s.role == TensorRole.OUTPUT.value)

    def address(self, seed: int, tensor: TensorSlot, slot: int) -> int:
        """Return where `tensor` lies for a seed; `slot` picks the copy of an output."""
        offset = tensor.offsets[slot if len(tensor.offsets) > 1 else 0]
        return int(self._buffers[seed].address) + offset

    def addresses(self, seed: int, slot: int) -> dict[str, int]:
        """Return every tensor's address by name."""
        return {t.name: self.address(seed, t, slot) for t in self.draw.slots}

    def close(self) -> None:
        """Unmap the buffers."""
        for buffer in self._buffers:
            buffer.close()
