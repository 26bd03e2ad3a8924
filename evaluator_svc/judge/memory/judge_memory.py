"""Where the judge's tensors lie, and what works on them there: one interface for every device kind.

Chosen once, by the device's id. All work of one memory is ordered: what torch and the native module
are given one after the other happens in that order.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Protocol

import torch

from evaluator_svc.judge.memory.cuda_memory import CudaMemory
from evaluator_svc.judge.memory.host_memory import HostMemory
from evaluator_svc.messages.measurement import RedrawRows
from kernel_foundry.domain.evaluation import Fact
from kernel_foundry_native import _core as native


class SharedBuffer(Protocol):
    """Memory that a runner can open."""

    @property
    def address(self) -> int:
        """Of the first byte, in this process."""

    @property
    def size_bytes(self) -> int:
        """As asked for."""

    def close(self) -> None:
        """Give it back."""


class JudgeMemory(Protocol):
    """What the judge needs of the memory that candidates work on."""

    @property
    def torch_device(self) -> torch.device:
        """Where the reference runs."""

    @property
    def total_bytes(self) -> int:
        """All there is."""

    @property
    def unit_bytes(self) -> int:
        """Shared buffers are whole ones: a runner maps no less."""

    @property
    def idle_share(self) -> float:
        """Share of `total_bytes` that idle shared buffers may hold."""

    @property
    def options_type(self) -> type[native.MeasureOptions]:
        """What `measure` takes as options."""

    @property
    def has_graphs(self) -> bool:
        """Whether work can be captured as a graph and replayed."""

    @property
    def rests_between_runs(self) -> bool:
        """Whether nobody but the judge writes to shared buffers while no kernel runs.

        Not so where a candidate is native code in a process of its own.
        """

    def share(self, size_bytes: int) -> SharedBuffer:
        """Return memory that a runner can open; its content is unspecified.

        Raises:
            OutOfMemoryError: there is none.
        """

    def passes(self, buffers: Sequence[SharedBuffer]) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """Return what opens the buffers elsewhere: handles in hexadecimal, or descriptors."""

    def bytes_of(self, buffer: SharedBuffer, start: int, size_bytes: int) -> torch.Tensor:
        """Return a view of part of a buffer, one element for each byte; at least one byte."""

    def fill(self, address: int, size_bytes: int, byte: int) -> None:
        """Fill a range with one byte."""

    def copy(self, to: int, from_: int, size_bytes: int) -> None:
        """Copy between ranges that do not overlap."""

    def same_bytes(self, a: int, b: int, size_bytes: int) -> bool:
        """Compare two ranges."""

    def redraw(
        self,
        address: int,
        *,
        dtype: str,
        size_bytes: int,
        key: int,
        number: int,
        undo_index: int,
        apply_index: int,
    ) -> None:
        """Bring a tensor in place from one call's values to another's, as the measuring loop does.

        Args:
            address: Of the tensor.
            dtype: Of floating point, or else elements change places.
            size_bytes: Its size.
            key: Decides the values with the number of the call.
            number: Of the tensor in its set.
            undo_index: The call whose values it has; 0: as drawn.
            apply_index: The call whose values it gets; 0: as drawn.
        """

    def compare(
        self,
        *,
        actual: int,
        expected: int,
        dtype: str,
        count: int,
        rtol: float,
        atol: float,
        scale: int,
        groups: int,
        inner: int,
    ) -> native.Comparison:
        """Compare two tensors by address, as `_core.compare` does."""

    def measure(
        self,
        call: Callable[[int], object],
        options: native.MeasureOptions,
        *,
        flush_bytes: int,
        redraw: RedrawRows | None = None,
    ) -> native.Measurement:
        """Measure `call(set)` with the loop that measures candidates.

        `redraw`: what has other values in each call, and the ones it has now after the last.
        """

    def synchronize(self) -> None:
        """Wait until all that was asked for has happened."""

    def take_peak(self) -> int:
        """Return the most bytes that torch's tensors took since the last call; 0: not counted."""

    def limit(self, size_bytes: int) -> None:
        """Let torch hold no more than this beyond what it holds; shared buffers do not count."""

    def trim(self) -> None:
        """Give freed memory back that others may need, where it is much."""

    def give_back(self) -> None:
        """Give all freed memory back."""

    def facts(self) -> tuple[Fact, ...]:
        """Return what it is, for evidence."""


def open_memory(device_id: str) -> JudgeMemory:
    """Return the memory of a device such as "cuda:0"; kinds that work in host memory share one.

    Raises:
        BackendUnavailableError: the device, or a torch for it, is not there.
    """
    kind, _, index = device_id.partition(":")
    return _cuda_memory(int(index)) if kind == "cuda" else HostMemory()


@cache
def _cuda_memory(index: int) -> CudaMemory:
    """Return the one memory of a device in this process.

    Its stream is torch's current one, and torch uses it until the process ends.
    """
    return CudaMemory.open(index)
