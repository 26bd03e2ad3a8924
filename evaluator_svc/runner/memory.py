"""A plan's own memory: scratch, one for all runs, and what `prepare` fills, one for each seed.

Knows nothing of launches.
"""

from collections.abc import Mapping
from typing import Any

from kernel_foundry.plan.sequence import BufferSpec


class PlanMemory:
    """Memory of a bound plan, beside the tensors of the name table.

    Args:
        device: Native device that allocates.
        buffers: All buffers of the plan.
        seed_count: Sets of weights.
    """

    def __init__(self, device: Any, buffers: tuple[BufferSpec, ...], *, seed_count: int) -> None:
        self.buffers = buffers
        # One scratch for all: the runs follow each other.
        self._scratch = _allocate(device, buffers, "scratch")
        self._prepared = [_allocate(device, buffers, "prepared") for _ in range(seed_count)]

    def addresses(self, tensors: Mapping[str, int], seed: int) -> list[int]:
        """Return the address of every buffer, in order; 0 for those that a call decides.

        Args:
            tensors: Addresses of the name table's tensors.
            seed: Whose weights were prepared.
        """
        own = {**self._scratch, **self._prepared[seed]}
        return [
            tensors[buffer.name] if buffer.kind == "tensor"
            else own[position].address if position in own
            else 0
            for position, buffer in enumerate(self.buffers)
        ]  # fmt: skip


def _allocate(device: Any, buffers: tuple[BufferSpec, ...], kind: str) -> dict[int, Any]:
    return {
        position: device.allocate(max(buffer.size_bytes, 1))
        for position, buffer in enumerate(buffers)
        if buffer.kind == kind
    }
