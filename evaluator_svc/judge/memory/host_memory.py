"""The judge's work in host memory, for devices whose kernels run on the CPU.

Shared buffers travel as file descriptors.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any, Final

import torch

from evaluator_svc.messages.measurement import RedrawRows
from kernel_foundry.domain.evaluation import Fact
from kernel_foundry_native import _core as native

_IDLE_SHARE: Final = 0.15


class HostMemory:
    """Host memory; see `JudgeMemory` for its methods. All of them have finished on return."""

    options_type = native.MeasureOptions
    has_graphs = False
    rests_between_runs = False
    idle_share = _IDLE_SHARE
    unit_bytes: int = native.PAGE_BYTES

    def __init__(self) -> None:
        # Before torch allocates anything large: see the native function's own reason.
        native.keep_memory()
        self.torch_device = torch.device("cpu")
        self.total_bytes: int = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")

    def share(self, size_bytes: int) -> native.SharedBuffer:
        """Return memory that a runner can open; its content is unspecified."""
        return native.SharedBuffer.create(size_bytes)

    def passes(self, buffers: Sequence[Any]) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """Return the buffers' descriptors."""
        return (), tuple(buffer.fd for buffer in buffers)

    def bytes_of(self, buffer: Any, start: int, size_bytes: int) -> torch.Tensor:
        """Return a view of part of a buffer."""
        return torch.frombuffer(buffer, dtype=torch.uint8, offset=start, count=size_bytes)

    def fill(self, address: int, size_bytes: int, byte: int) -> None:
        """Fill a range with one byte."""
        native.fill(address, size_bytes, byte)

    def copy(self, to: int, from_: int, size_bytes: int) -> None:
        """Copy between ranges that do not overlap."""
        native.copy(to, from_, size_bytes)

    def same_bytes(self, a: int, b: int, size_bytes: int) -> bool:
        """Compare two ranges."""
        return native.same_bytes(a, b, size_bytes)

    def redraw(self, address: int, **arguments: Any) -> None:
        """Bring a tensor in place from one call's values to another's."""
        native.redraw(address, **arguments)

    def compare(self, **arguments: Any) -> native.Comparison:
        """Compare two tensors by address."""
        return native.compare(**arguments)

    def measure(
        self,
        call: Callable[[int], object],
        options: native.MeasureOptions,
        *,
        flush_bytes: int,
        redraw: RedrawRows | None = None,
    ) -> native.Measurement:
        """Measure by the steady clock."""
        return native.measure_callable(call, options, flush_bytes=flush_bytes, redraw=redraw)

    def synchronize(self) -> None:
        """Nothing is ever under way."""

    def take_peak(self) -> int:
        """Torch does not count what it takes of the host."""
        return 0

    def limit(self, size_bytes: int) -> None:
        """The operating system's to say."""

    def trim(self) -> None:
        """Freed memory is kept on purpose."""

    def give_back(self) -> None:
        """The same."""

    def facts(self) -> tuple[Fact, ...]:
        """Return what it is, for evidence."""
        value = "malloc keeps freed memory (no fresh pages for each result)"
        return (Fact(name="allocator", value=value),)
