"""The judge's work in the memory of a CUDA device.

Torch and the native module share the device's primary context and one stream, the native device's
own, so that their work is ordered and timed by the same events. Shared buffers travel as CUDA IPC
handles. Imports no CUDA library before a device is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Self

import torch

from evaluator_svc.messages.measurement import RedrawRows
from kernel_foundry.domain.evaluation import Fact
from kernel_foundry.errors import BackendUnavailableError
from kernel_foundry_native import DriverUnavailableError, device_kind
from kernel_foundry_native import _core as native

if TYPE_CHECKING:
    from kernel_foundry_native._cuda import Device, SharedMemory

_IDLE_SHARE: Final = 0.02
"""Of the device's memory. No evaluation accounts for what is idle, so it has to be little."""

_TORCH_KEEPS_SHARE: Final = 0.02
"""Share of the device's memory that torch may keep while it does not use it."""


class CudaMemory:
    """Memory of one CUDA device; see `JudgeMemory` for its methods.

    Work is queued on one stream, which is torch's current one from here on; only `same_bytes`,
    `compare`, `measure` and `synchronize` wait for it.

    Args:
        device: The native device.
        torch_device: The same device as torch calls it.
    """

    has_graphs = True
    rests_between_runs = True
    idle_share = _IDLE_SHARE

    def __init__(self, device: Device, torch_device: torch.device) -> None:
        self.torch_device = torch_device
        self.total_bytes: int = device.memory_bytes
        self.unit_bytes: int = device.unit_bytes
        self._device = device
        self.options_type: type[native.MeasureOptions] = device_kind("cuda").MeasureOptions
        torch.cuda.set_device(torch_device)
        stream = torch.cuda.ExternalStream(  # type: ignore[no-untyped-call]  # torch's own
            device.stream, device=torch_device
        )
        torch.cuda.set_stream(stream)
        # float32 means float32 but where a task allows TF32 (`tf32`). What cuDNN chooses stays
        # PyTorch's default (no autotuning, no insistence on deterministic algorithms): baselines
        # are what users get, and verdicts have a tolerance.
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False

    @classmethod
    def open(cls, index: int) -> Self:
        """Open device `index`.

        Raises:
            BackendUnavailableError: no driver, no such device, or a torch without CUDA.
        """
        if torch.version.cuda is None:
            raise BackendUnavailableError(
                f"torch {torch.__version__} was built without CUDA; install the CUDA build",
                device=f"cuda:{index}",
            )
        try:
            device = device_kind("cuda").open_device(index)
        except DriverUnavailableError as error:
            raise BackendUnavailableError(str(error), device=f"cuda:{index}") from error
        return cls(device, torch.device("cuda", index))

    def share(self, size_bytes: int) -> SharedMemory:
        """Return memory that a runner can open; its content is unspecified."""
        self.trim()
        return self._device.create_shared(size_bytes)

    def open_shared(self, handle: bytes, size_bytes: int) -> SharedMemory:
        """Return memory that another process shares."""
        return self._device.open_shared(handle, size_bytes)

    def passes(self, buffers: Sequence[Any]) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """Return the buffers' handles in hexadecimal."""
        return tuple(buffer.handle.hex() for buffer in buffers), ()

    def bytes_of(self, buffer: Any, start: int, size_bytes: int) -> torch.Tensor:
        """Return a view of part of a buffer."""
        array = _DeviceBytes(buffer.address + start, size_bytes)
        return torch.as_tensor(array, device=self.torch_device)

    def fill(self, address: int, size_bytes: int, byte: int) -> None:
        """Fill a range with one byte."""
        if size_bytes:
            self._device.fill(address, size_bytes, byte)

    def copy(self, to: int, from_: int, size_bytes: int) -> None:
        """Copy between ranges that do not overlap."""
        if size_bytes:
            self._device.copy(to, from_, size_bytes)

    def same_bytes(self, a: int, b: int, size_bytes: int) -> bool:
        """Compare two ranges."""
        return not size_bytes or self._device.same_bytes(a, b, size_bytes)

    def redraw(self, address: int, **arguments: Any) -> None:
        """Bring a tensor in place from one call's values to another's."""
        self._device.redraw(address, **arguments)

    def compare(self, **arguments: Any) -> native.Comparison:
        """Compare two tensors by address."""
        return self._device.compare(**arguments)

    def measure(
        self,
        call: Callable[[int], object],
        options: native.MeasureOptions,
        *,
        flush_bytes: int,
        redraw: RedrawRows | None = None,
    ) -> native.Measurement:
        """Measure what `call` puts on the stream, by events around it."""
        return self._device.measure_callable(call, options, flush_bytes=flush_bytes, redraw=redraw)

    def synchronize(self) -> None:
        """Wait for the device."""
        torch.cuda.synchronize(self.torch_device)

    def trim(self) -> None:
        """Give torch's unused memory back when it is much: runners need it too."""
        # memory_reserved and memory_allocated each sort all of torch's figures for one of them.
        figures = torch.cuda.memory_stats_as_nested_dict(self.torch_device)
        reserved, allocated = (
            figures[f"{name}_bytes"]["all"]["current"] for name in ("reserved", "allocated")
        )
        idle = reserved - allocated
        if idle > _TORCH_KEEPS_SHARE * self.total_bytes:
            torch.cuda.empty_cache()

    def take_peak(self) -> int:
        """Return the most bytes that torch's tensors took since the last call."""
        peak = torch.cuda.max_memory_allocated(self.torch_device)
        torch.cuda.reset_peak_memory_stats(self.torch_device)
        return peak

    def limit(self, size_bytes: int) -> None:
        """Bound torch's allocator."""
        allowed = torch.cuda.memory_allocated(self.torch_device) + size_bytes
        share = min(allowed / self.total_bytes, 1.0)
        torch.cuda.set_per_process_memory_fraction(share, self.torch_device)

    def give_back(self) -> None:
        """Give all of torch's unused memory back."""
        torch.cuda.synchronize(self.torch_device)
        torch.cuda.empty_cache()

    def facts(self) -> tuple[Fact, ...]:
        """Return what it is, for evidence."""
        backends = torch.backends
        values = {
            "device of torch": str(self._device.name),
            "driver": str(self._device.driver_version),
            "CUDA of torch": str(torch.version.cuda),
            "cuDNN": str(backends.cudnn.version()),  # type: ignore[no-untyped-call]
            "cuDNN algorithms": "PyTorch's default choice"
            f" (deterministic {backends.cudnn.deterministic}, benchmark"
            f" {backends.cudnn.benchmark})",
            "allocator": f"torch's caching one ({torch.cuda.get_allocator_backend()}) on the"
            " native device's stream",
        }
        return tuple(Fact(name=name, value=value) for name, value in values.items())


class _DeviceBytes:
    """Device memory that torch takes as a tensor of bytes without copying it."""

    def __init__(self, address: int, size_bytes: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (size_bytes,),
            "typestr": "|u1",
            "data": (address, False),
            "strides": None,
            "version": 3,
        }
