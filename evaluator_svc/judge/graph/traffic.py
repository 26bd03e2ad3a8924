"""The traffic bound: the time below which a device cannot move what a reference must move.

The only hard bound on a kernel's time.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from evaluator_svc.judge.graph.needed import needed_elements
from evaluator_svc.sizes.memory_needs import tensor_bytes
from kernel_foundry.domain.admission import GraphNode, NamedTensor, TensorRole
from kernel_foundry.domain.device import Peaks


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Compulsory bytes of one call: what is used is read once, outputs are written once."""

    read_bytes: int
    written_bytes: int

    @property
    def bytes(self) -> int:
        """Both together."""
        return self.read_bytes + self.written_bytes


def count_traffic(tensors: Sequence[NamedTensor], graph: Sequence[GraphNode]) -> Traffic:
    """Return the compulsory bytes; without a graph every tensor counts in full.

    Of an input as much counts as some output needs for certain, see `needed_elements`.
    """
    needed = needed_elements(graph)
    read = written = 0
    for tensor in tensors:
        size = tensor_bytes(tensor)
        if tensor.role is TensorRole.OUTPUT:
            written += size
        elif not graph:
            read += size
        elif count := math.prod(tensor.shape):
            read += size * min(needed.get(tensor.name, 0), count) // count
    return Traffic(read_bytes=read, written_bytes=written)


def traffic_bound_ns(traffic: Traffic, *, cache_bytes: int, peaks: Peaks) -> float:
    """Return what moving `traffic` between memory and device takes at least.

    Inputs come from memory, since caches are emptied before each sample; of the outputs as much
    as the last-level cache holds may stay there when the call ends. As many bytes as are both
    read and written go at the bandwidth of a copy, the rest at that of reading alone, where that
    is higher: memory loses time when it turns from reading to writing.
    Source: the memory side of Williams, Waterman and Patterson 2009, for write-back caches.
    """
    written = max(traffic.written_bytes - cache_bytes, 0)
    copied = 2 * min(traffic.read_bytes, written)
    alone = abs(traffic.read_bytes - written)
    copy_rate = peaks.bandwidth_bytes_per_second
    fastest = max(copy_rate, peaks.read_bandwidth_bytes_per_second)
    return 1e9 * (copied / copy_rate + alone / fastest)
