"""The traffic bound: the time below which a device cannot move what a reference must move.

The only hard bound on a kernel's time. Knows nothing of arithmetic.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from evaluator_svc.judge.reference.graph import operands
from evaluator_svc.memory_needs import tensor_bytes
from kernel_foundry.domain.admission import GraphNode, NamedTensor, TensorRole
from kernel_foundry.domain.device import Peaks

_PARTIAL: Final = frozenset({
    "slice", "select", "narrow", "index", "index_select", "gather", "embedding", "take",
    "view", "reshape", "_unsafe_view", "permute", "transpose", "t", "flatten", "squeeze",
    "unsqueeze", "alias", "detach",
})  # fmt: skip
"""Operators that read no more of their first operand than they make."""

_SHAPE_ONLY: Final = frozenset({
    "empty_like", "full_like", "new_empty", "new_full", "new_ones", "new_zeros", "ones_like",
    "rand_like", "randn_like", "zeros_like",
})  # fmt: skip
"""Operators that read nothing: they ask an operand for its shape."""


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

    Of a tensor that is only sliced, indexed or gathered from, as much counts as is taken out.
    """
    needed = _needed_elements(graph)
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


def _needed_elements(graph: Sequence[GraphNode]) -> Mapping[str, int]:
    """Return for each node how many of its elements the result needs at most."""
    needed: defaultdict[str, int] = defaultdict(int)
    sizes = {node.name: math.prod(node.shape) for node in graph}
    for node in reversed(graph):
        parts = node.op.split(".")
        if parts[0] == "aten" and parts[1] in _SHAPE_ONLY:
            continue
        takes_part = parts[0] == "aten" and parts[1] in _PARTIAL and bool(node.dtype)
        taken = min(needed[node.name], sizes[node.name])
        for position, operand in enumerate(operands(node)):
            whole = sizes.get(operand, 0)
            needed[operand] += min(taken, whole) if takes_part and position == 0 else whole
    return needed
