"""Kernels on NVIDIA GPUs: cubins through the driver that torch uses."""

import contextlib
import ctypes
import struct
import threading
from collections.abc import Iterator
from ctypes import byref, c_char_p, c_int, c_uint, c_uint64, c_void_p
from functools import partial
from typing import Any, Final

import torch

from kernel_foundry.sdk.export.runtime.plan import Launch, Limits, NoKernelError
from kernel_foundry.sdk.export.runtime.streams import current_queue
from kernel_foundry.sdk.export.runtime.task import ARCHITECTURE, LIMITS

_MAX_BLOCK: Final = 1
_COMPUTE_UNITS: Final = 16
_MAJOR: Final = 75
_MINOR: Final = 76
_SHARED_BYTES: Final = 97
"""That a block may have when it asks for them."""
_STATIC_SHARED: Final = 1
_DYNAMIC_SHARED: Final = 8
_CARVEOUT: Final = 9
_CLUSTER_SIZES: Final = (11, 12, 13)
_LARGE_CLUSTERS: Final = 14
_PORTABLE_CLUSTER: Final = 8
_USUAL_SHARED: Final = 48 << 10
_DRIVERS: Final = (
    "libcuda.so.1",
    "/usr/local/nvidia/lib64/libcuda.so.1",
    "/usr/lib/wsl/lib/libcuda.so.1",
)


class GpuLaunch:
    """One launch with its numbers.

    Args:
        driver: Of the GPU.
        program: What holds the kernel.
        launch: Which kernel, and how.
        shared_bytes: That a block of this GPU may have.
        addresses: Where the addresses of buffers will be.
    """

    def __init__(
        self, driver: "Driver", program: c_void_p, launch: Launch, shared_bytes: int, addresses: Any
    ) -> None:
        self._driver = driver
        function = c_void_p()
        driver.call("cuModuleGetFunction", byref(function), program, launch.kernel.encode())
        self._function = function
        static = self._attribute(_STATIC_SHARED)
        driver.call("cuFuncSetAttribute", function, _DYNAMIC_SHARED, shared_bytes - static)
        if static + launch.shared_bytes > _USUAL_SHARED:
            driver.call("cuFuncSetAttribute", function, _CARVEOUT, 100)
        self._allow_large_clusters()
        self._values = [
            (ctypes.c_char * len(a)).from_buffer_copy(a) if isinstance(a, bytes) else None
            for a in launch.arguments
        ]
        places = [
            ctypes.addressof(addresses) + 8 * argument if value is None else ctypes.addressof(value)
            for value, argument in zip(self._values, launch.arguments, strict=True)
        ]
        self._parameters = (c_void_p * len(places))(*places)
        is_cooperative = launch.is_cooperative
        name = "cuLaunchCooperativeKernel" if is_cooperative else "cuLaunchKernel"
        self._start = getattr(driver.api, name)
        # As the call takes them, so that it has nothing to convert.
        parameters = byref(self._parameters)
        first = c_void_p.from_param(function.value or 0)
        self._first = (first, *launch.grid, *launch.block, launch.shared_bytes)
        self._last = (parameters,) if is_cooperative else (parameters, None)

    def call_in(self, queue: int) -> tuple[Any, tuple[Any, ...]]:
        """Return the driver's function that starts the kernel in a queue, and its arguments."""
        return self._start, (*self._first, c_void_p.from_param(queue), *self._last)

    def _attribute(self, name: int) -> int:
        value = c_int()
        self._driver.call("cuFuncGetAttribute", byref(value), name, self._function)
        return value.value

    def _allow_large_clusters(self) -> None:
        size = 1
        for name in _CLUSTER_SIZES:
            value = c_int()
            # A driver that knows no clusters has no such attribute.
            if self._driver.api.cuFuncGetAttribute(byref(value), name, self._function) != 0:
                return
            size *= max(value.value, 1)
        if size > _PORTABLE_CLUSTER:
            self._driver.call("cuFuncSetAttribute", self._function, _LARGE_CLUSTERS, 1)


class GpuRow:
    """Launches that follow one another, and the addresses that they have in common.

    Args:
        device: Where they run.
        program: What holds the kernels.
        launches: Which kernels, and how.
        count: Of addresses.
    """

    def __init__(
        self, device: "GpuDevice", program: c_void_p, launches: tuple[Launch, ...], count: int
    ) -> None:
        self._driver, self._context, self._index = device.driver, device.context, device.index
        self._addresses: Any = (c_uint64 * count)()
        self._write = partial(struct.Struct(f"{count}Q").pack_into, self._addresses, 0)
        self._launches = [
            GpuLaunch(device.driver, program, launch, device.shared_bytes, self._addresses)
            for launch in launches
        ]
        self._lock = threading.Lock()
        self._queue = -1
        self._calls: list[tuple[Any, tuple[Any, ...]]] = []
        """Of the launches in that queue: to make them takes as long as they do."""

    def run(self, *addresses: int) -> None:
        """Start the kernels in order, behind what torch has queued; the GPU is the current one.

        Raises:
            NoKernelError: the driver refuses one.
        """
        queue = current_queue(self._index)
        with self._lock:
            if queue != self._queue:
                self._calls = [launch.call_in(queue) for launch in self._launches]
                self._queue = queue
            self._write(*addresses)
            for start, arguments in self._calls:
                if start(*arguments):
                    # A thread may have no context yet, or a program another one.
                    self._driver.call("cuCtxSetCurrent", self._context)
                    self._driver.check(start(*arguments), "cuLaunchKernel")


class Driver:
    """The CUDA driver.

    Raises:
        NoKernelError: there is none.
    """

    def __init__(self, paths: tuple[str, ...] = _DRIVERS) -> None:
        self.api: Any = None
        for path in paths:
            try:
                self.api = ctypes.CDLL(path)
                break
            except OSError as error:
                reason = str(error)
        if self.api is None:
            raise NoKernelError(f"no CUDA driver: {reason}")
        self.api.cuModuleLoadDataEx.argtypes = [c_void_p, c_char_p, c_uint, c_void_p, c_void_p]
        self.api.cuFuncSetAttribute.argtypes = [c_void_p, c_int, c_int]
        self.call("cuInit", 0)

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function of the driver.

        Raises:
            NoKernelError: it reports an error.
        """
        self.check(getattr(self.api, name)(*arguments), name)

    def check(self, error: int, call: str) -> None:
        """Refuse what the driver refused.

        Raises:
            NoKernelError: it has reported an error.
        """
        if error != 0:
            text = c_char_p()
            self.api.cuGetErrorName(error, byref(text))
            raise NoKernelError(f"{call}: {(text.value or b'unknown').decode()} ({error})")


class GpuDevice:
    """One GPU.

    Args:
        driver: The CUDA driver.
        index: Of the GPU as torch counts.

    Raises:
        NoKernelError: the kernels of this file are for another architecture.
    """

    is_host = False
    alignment = 256
    """Bytes that addresses of tensors are a multiple of: torch's own are."""

    def __init__(self, driver: Driver, index: int) -> None:
        self.driver = driver
        self.index = index
        self._ordinal = c_int()
        driver.call("cuDeviceGet", byref(self._ordinal), index)
        architecture = f"sm_{self._fact(_MAJOR)}{self._fact(_MINOR)}"
        if ARCHITECTURE.rstrip("af") != architecture:
            raise NoKernelError(f"kernels are for {ARCHITECTURE}, and this GPU is {architecture}")
        self.context = c_void_p()
        driver.call("cuDevicePrimaryCtxRetain", byref(self.context), self._ordinal)
        self.shared_bytes = self._fact(_SHARED_BYTES)
        self.limits = Limits(
            compute_units=self._fact(_COMPUTE_UNITS),
            sub_group_size=LIMITS["sub_group_size"],
            shared_bytes=min(LIMITS["shared_bytes"], self.shared_bytes),
            max_block=min(LIMITS["max_block"], self._fact(_MAX_BLOCK)),
        )

    def load(self, code: bytes) -> c_void_p:
        """Return the program in a cubin.

        Raises:
            NoKernelError: the driver does not take it.
        """
        program = c_void_p()
        if not code.startswith(b"\x7fELF"):  # anything else the driver takes for PTX
            raise NoKernelError("the object code is no cubin")
        with self.current():
            self.driver.call("cuModuleLoadDataEx", byref(program), code, 0, None, None)
        return program

    def bind(self, program: c_void_p, launches: tuple[Launch, ...], count: int) -> GpuRow:
        """Return launches of a program's kernels, for some number of addresses.

        Raises:
            NoKernelError: a kernel does not take it.
        """
        with self.current():
            return GpuRow(self, program, launches, count)

    def is_current(self) -> bool:
        """Return whether torch works on this GPU now."""
        found: bool = torch._C._cuda_getDevice() == self.index
        return found

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """Make the GPU the current one for a while."""
        has_torch = torch.cuda.is_available()
        with torch.cuda.device(self.index) if has_torch else contextlib.nullcontext():
            self.driver.call("cuCtxSetCurrent", self.context)
            yield

    def _fact(self, name: int) -> int:
        value = c_int()
        self.driver.call("cuDeviceGetAttribute", byref(value), name, self._ordinal)
        return value.value


_devices: dict[int, GpuDevice] = {}
_opening = threading.Lock()


def device_of(tensor: torch.Tensor) -> GpuDevice:
    """Return the GPU of a tensor; the first call opens it.

    Raises:
        NoKernelError: its architecture is another one, or there is no driver.
    """
    index = tensor.get_device()
    found = _devices.get(index)
    if found is None:
        with _opening:
            found = _devices[index] = _devices.get(index) or GpuDevice(Driver(), index)
    return found
