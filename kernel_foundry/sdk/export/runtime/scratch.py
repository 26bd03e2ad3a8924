"""Memory that a plan needs for a call, beside tensors of the task."""

import threading
from typing import Final

import torch

from kernel_foundry.sdk.export.runtime.plan import Buffer

_PLACE: Final = 512
"""Bytes that buffers of a plan begin at a multiple of, as torch's allocators have it."""


class Scratch:
    """Memory of a plan for one call: one piece, in which each of its buffers has a place.

    Args:
        buffers: With their slots.
        cleared: Slots of those that are zero when a call begins.
    """

    def __init__(self, buffers: list[tuple[int, Buffer]], cleared: set[int]) -> None:
        self.places: list[tuple[int, int, Buffer]] = []
        """Slot, offset in bytes and buffer."""
        self.cleared: list[tuple[int, int]] = []
        """Offset and bytes of those that are zero when a call begins."""
        self._own = threading.local()
        end = 0
        for slot, buffer in buffers:
            size = buffer.numel() * getattr(torch, buffer.dtype).itemsize
            self.places.append((slot, end, buffer))
            if slot in cleared:
                self.cleared.append((end, size))
            end += -(-size // _PLACE) * _PLACE
        self.bytes = end
        """Of the memory."""

    def memory(self, device: torch.device, *, is_kept: bool) -> torch.Tensor:
        """Return the memory; where it is kept, a thread has its own."""
        found: torch.Tensor | None = getattr(self._own, "kept", None) if is_kept else None
        if found is None:
            found = torch.empty(self.bytes, dtype=torch.uint8, device=device)
            if is_kept:
                self._own.kept = found
        for offset, size in self.cleared:
            found.narrow(0, offset, size).zero_()
        return found

    def tensors(self, memory: torch.Tensor) -> list[tuple[int, torch.Tensor]]:
        """Return each buffer as a tensor, with its slot."""
        found = []
        for slot, offset, buffer in self.places:
            dtype = getattr(torch, buffer.dtype)
            part = memory.narrow(0, offset, buffer.numel() * dtype.itemsize)
            found.append((slot, part.view(dtype).view(buffer.shape)))
        return found
