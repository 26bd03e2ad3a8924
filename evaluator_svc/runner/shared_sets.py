"""The judge's shared buffers as a runner sees them: one for each seed, inputs and output slots.

Inputs are mapped writable, so that a kernel that changes them is found out and not ended. Host
memory comes as file descriptors, device memory as handles. A draw with neither is of zeros, in
memory of the runner's own: what a device's peaks are measured on. Knows nothing of what the
outputs should be.
"""

import os
from typing import Any

from evaluator_svc.messages.exchange import ALIGNMENT_BYTES, Draw, TensorSlot
from kernel_foundry.domain.admission import TensorRole


class SharedSets:
    """A draw's buffers, mapped.

    Args:
        draw: What lies where, with handles of device memory.
        descriptors: Of host memory, one for each seed; closed once the buffers are mapped.
        device: Native device that opens handles.
    """

    def __init__(self, draw: Draw, descriptors: tuple[int, ...], device: Any) -> None:
        self.draw = draw
        self.is_device_memory = not descriptors
        """Whether a kernel reads it where it lies as fast as memory of its own."""
        self._starts = {offset for slot in draw.slots for offset in slot.offsets}
        self._buffers: list[Any]
        if descriptors:
            self._buffers = _mapped(descriptors, draw.size_bytes)
        elif draw.handles:
            self._buffers = [
                device.open_shared(bytes.fromhex(handle), draw.size_bytes)
                for handle in draw.handles
            ]
        else:
            self._buffers = [_Zeros(device, draw.size_bytes) for _ in range(draw.seed_count)]

    @property
    def inputs(self) -> tuple[TensorSlot, ...]:
        """Slots of all that a candidate reads."""
        return tuple(s for s in self.draw.slots if s.role != TensorRole.OUTPUT.value)

    @property
    def outputs(self) -> tuple[TensorSlot, ...]:
        """Slots of all that a candidate writes."""
        return tuple(s for s in self.draw.slots if s.role == TensorRole.OUTPUT.value)

    @property
    def set_bytes(self) -> int:
        """Bytes of one set: the inputs, and the outputs once."""
        return sum(_aligned(slot.size_bytes) for slot in self.draw.slots)

    @property
    def layout_bytes(self) -> int:
        """Bytes from a buffer's start to the end of the last output's first slot."""
        return max(slot.offsets[0] + self.span_bytes(slot) for slot in self.draw.slots)

    def span_bytes(self, tensor: TensorSlot) -> int:
        """Return the bytes from a tensor's start to the next one's: itself and the guard behind."""
        following = [start for start in self._starts if start > tensor.offsets[0]]
        return min(following, default=self.draw.size_bytes) - tensor.offsets[0]

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


class _Zeros:
    """Private memory with the face of a shared buffer.

    Args:
        device: Native device that allocates.
        size_bytes: How much.
    """

    def __init__(self, device: Any, size_bytes: int) -> None:
        self._buffer = device.allocate(size_bytes)
        self.address = int(self._buffer.address)
        device.fill(self.address, size_bytes, 0)

    def close(self) -> None:
        """Give the memory back."""
        self._buffer = None


def _mapped(descriptors: tuple[int, ...], size_bytes: int) -> list[Any]:
    from kernel_foundry_native import _core

    buffers = [_core.SharedBuffer.open(descriptor, size_bytes) for descriptor in descriptors]
    for descriptor in descriptors:
        os.close(descriptor)
    return buffers


def _aligned(size_bytes: int) -> int:
    return -(-size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
