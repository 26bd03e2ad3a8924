"""The most memory that torch held on a device while something ran."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch


@dataclass(slots=True)
class MemoryPeak:
    """What was seen, in bytes; 0 until it is over, and where torch does not count."""

    bytes: int = 0


@contextmanager
def torch_peak(device: torch.device) -> Iterator[MemoryPeak]:
    """Yield what becomes the most that torch's tensors held beyond what they held before.

    Torch counts on a GPU alone.
    """
    peak = MemoryPeak()
    if device.type != "cuda":
        yield peak
        return
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    try:
        yield peak
    finally:
        peak.bytes = torch.cuda.max_memory_allocated(device) - before
