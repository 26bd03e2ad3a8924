"""Device memory that judging one workload takes, in bytes, from the sizes of its tensors.

There are two ways to judge. *Full*: a shared buffer for each seed with a copy of the outputs for
each run; the judge keeps all inputs and expected outputs. *Lean*: one shared buffer, used by one
seed after the other, with one copy of the outputs; inputs are drawn and expected outputs computed
again for each use.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

from evaluator_svc.messages.draw import OUTPUT_SLOTS, SEED_COUNT
from kernel_foundry.domain.admission import NamedTensor, TensorRole
from kernel_foundry.plan.dtypes import DTYPE_BYTES

USABLE_SHARE: Final = 0.9
"""Usable share of a device's memory. The rest is for the contexts of processes, some of which are
spare, for buffers that are kept for the next draw, and for memory that allocators keep."""

BLOCK_BYTES: Final = 1 << 28
"""Bytes for temporaries of work that is done in blocks."""

_RANGES_BYTES: Final = 1 << 28
"""Inputs and outputs beyond this would make a verdict slow: there are over ten distributions."""


def tensor_bytes(tensor: NamedTensor) -> int:
    """Return the size of a tensor's elements."""
    return math.prod(tensor.shape) * DTYPE_BYTES[tensor.dtype]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadSizes:
    """Bytes of a workload's tensors."""

    source_bytes: int
    """Inputs, parameters and buffers."""
    output_bytes: int
    reference_bytes: int
    """Most that the reference takes while it runs, its outputs included, its inputs not."""

    @classmethod
    def of(cls, tensors: Sequence[NamedTensor], *, reference_bytes: int = 0) -> Self:
        """Return the sizes of a name table; a reference takes no less than its outputs."""
        outputs = sum(tensor_bytes(t) for t in tensors if t.role is TensorRole.OUTPUT)
        return cls(
            source_bytes=sum(tensor_bytes(t) for t in tensors if t.role is not TensorRole.OUTPUT),
            output_bytes=outputs,
            reference_bytes=max(reference_bytes, outputs),
        )

    @property
    def set_bytes(self) -> int:
        """Bytes of what one call reads and writes."""
        return self.source_bytes + self.output_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryNeed:
    """Bytes that judging a workload takes."""

    held_bytes: int
    """From the first draw to the end."""
    passing_bytes: int
    """At most at one time beyond that; given back before the next workload's turn."""

    @property
    def bytes(self) -> int:
        """All of it."""
        return self.held_bytes + self.passing_bytes


def full_need(sizes: WorkloadSizes, *, pool_bytes: int, seed_count: int = SEED_COUNT) -> MemoryNeed:
    """Return what it takes with every copy; `pool_bytes` are the runner's sets that are timed."""
    shared = seed_count * (sizes.source_bytes + OUTPUT_SLOTS * sizes.output_bytes)
    kept = seed_count * sizes.set_bytes
    # The reference once more in float64, on inputs cast to it.
    passing = 2 * (sizes.source_bytes + sizes.reference_bytes)
    return MemoryNeed(held_bytes=shared + kept + pool_bytes, passing_bytes=passing)


def lean_need(sizes: WorkloadSizes, *, pool_bytes: int) -> MemoryNeed:
    """Return the least that it takes; `pool_bytes` as for `full_need`."""
    passing = max(
        sizes.source_bytes + sizes.reference_bytes,  # drawn again, and the reference on it
        2 * sizes.source_bytes,  # changed, beside what it was before
        2 * sizes.output_bytes,  # expected, and the output of a timed call that is kept
    )
    blocks = min(BLOCK_BYTES, 2 * sizes.set_bytes)
    return MemoryNeed(held_bytes=sizes.set_bytes + pool_bytes, passing_bytes=passing + blocks)


def pool_bytes(sizes: WorkloadSizes, *, wanted_bytes: int, limit_bytes: int, is_gpu: bool) -> int:
    """Return what the runner's private copies of inputs and outputs hold while times are taken.

    None on a GPU where one set is beyond every cache: then the shared buffers are timed.
    """
    set_bytes = sizes.set_bytes
    if is_gpu and set_bytes >= wanted_bytes:
        return 0
    sets = max(-(-wanted_bytes // max(set_bytes, 1)), SEED_COUNT)
    return max(min(sets * set_bytes, limit_bytes), set_bytes)


def has_ranges_size(sizes: WorkloadSizes) -> bool:
    """Return whether a workload is small enough to be tried on inputs of unusual values."""
    return sizes.source_bytes + OUTPUT_SLOTS * sizes.output_bytes <= _RANGES_BYTES


def refusal(needed_bytes: int, memory_bytes: int) -> str | None:
    """Return why `needed_bytes` cannot be had of a device's `memory_bytes`, or None."""
    limit = int(USABLE_SHARE * memory_bytes)
    if needed_bytes <= limit:
        return None
    return (
        f"does not fit the memory: an evaluation needs {needed_bytes / 1e9:.1f} GB, there are"
        f" {limit / 1e9:.1f} GB; choose smaller sizes in the sidecar"
    )
