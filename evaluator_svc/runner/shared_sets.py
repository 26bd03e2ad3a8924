"""The judge's shared buffers as a runner sees them: one for each seed, inputs and output slots.

In host memory kernels can only read inputs, and reach no page without a tensor; device memory is
opened writable as a whole. Host memory comes as file descriptors, device memory as handles. A draw
with neither is of zeros, in memory of the runner's own: what a device's peaks are measured on.
"""

import ctypes
import os
from collections.abc import Iterator
from typing import Any

from evaluator_svc.messages.draw import ALIGNMENT_BYTES, POISON_BYTE, Draw, TensorSlot
from evaluator_svc.messages.placement import PAGE_BYTES
from evaluator_svc.runner.covered import CoveredRange
from evaluator_svc.runner.surroundings import Place, Range, Surroundings
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

        self.guard_byte = self._guard_byte(device)
        """What the judge has filled guards with."""
        self.surroundings = tuple(
            Surroundings(
                device,
                address=int(buffer.address),
                size_bytes=draw.size_bytes,
                places=self.places(),
                byte=self.guard_byte,
            )
            for buffer in self._buffers
        )
        """Of each buffer."""

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
        """Bytes from a buffer's start to the end of the last output's first slot, and a page."""
        return max(place.pages[1] for place in self.places(copies=1)) + PAGE_BYTES

    def places(self, *, copies: int | None = None) -> tuple[Place, ...]:
        """Return where every tensor lies in a buffer; the first `copies` of each output, or all."""
        return tuple(
            Place(
                name=slot.name,
                start=offset,
                size_bytes=slot.size_bytes,
                is_read_only=slot.role != TensorRole.OUTPUT.value,
            )
            for slot in self.draw.slots
            for offset in slot.offsets[:copies]
        )

    def address(self, seed: int, tensor: TensorSlot, slot: int) -> int:
        """Return where `tensor` lies for a seed; `slot` picks the copy of an output."""
        offset = tensor.offsets[slot if len(tensor.offsets) > 1 else 0]
        return int(self._buffers[seed].address) + offset

    def addresses(self, seed: int, slot: int) -> dict[str, int]:
        """Return every tensor's address by name."""
        return {t.name: self.address(seed, t, slot) for t in self.draw.slots}

    def output_ranges(self, *, but_last: bool) -> tuple[Range, ...]:
        """Return every output of every buffer, and what it is overwritten with.

        `but_last`: without the last slots.
        """
        return tuple(
            (self.address(seed, tensor, slot), tensor.size_bytes, POISON_BYTE)
            for seed in range(self.draw.seed_count)
            for tensor in self.outputs
            for slot in range(len(tensor.offsets) - but_last)
        )

    def covered(self) -> tuple[CoveredRange, ...]:
        """Return all inputs and outputs of every buffer; parameters are not among them."""
        return tuple(
            each for buffer in self._buffers for each in self.covered_at(int(buffer.address))
        )

    def covered_at(self, address: int, *, copies: int | None = None) -> Iterator[CoveredRange]:
        """Yield inputs and outputs of memory that is laid out as a buffer is."""
        for tensor in self.draw.slots:
            is_output = tensor.role == TensorRole.OUTPUT.value
            if tensor.size_bytes and (is_output or tensor.role == TensorRole.INPUT.value):
                for offset in tensor.offsets[:copies]:
                    yield address + offset, tensor.size_bytes, not is_output, tensor.name

    def close(self) -> None:
        """Unmap the buffers."""
        for surroundings in self.surroundings:
            surroundings.close()
        for buffer in self._buffers:
            buffer.close()

    def _guard_byte(self, device: Any) -> int:
        taken = {place.start for place in self.places() if place.size_bytes}
        if 0 in taken or not self._buffers:
            return 0
        byte = ctypes.c_ubyte()
        start = int(self._buffers[0].address)
        device.copy(to=ctypes.addressof(byte), from_=start, size_bytes=1)
        return byte.value


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
