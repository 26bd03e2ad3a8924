"""Kernels on NVIDIA GPUs: cubins through the driver that torch uses."""

import contextlib
import ctypes
import threading
from collections.abc import Iterator
from ctypes import byref, c_char_p, c_int, c_uint, c_uint64, c_void_p
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
    """One launch with its numbers; it is given the addresses of its buffers in each call.

    Args:
        driver: Of the GPU.
        program: What holds the kernel.
        launch: Which kernel, and how.
        shared_bytes: That a block of this GPU may have.
    """

    def __init__(
        self, driver: "Driver", program: c_void_p, launch: Launch, shared_bytes: int
    ) -> None:
        self._driver = driver
        function = c_void_p()
        name = launch.kernel.encode()
        driver.call("cuModuleGetFunction", byref(function), program, name)
        self._function = function
        static = self._attribute(_STATIC_SHARED)
        driver.call("cuFuncSetAttribute", function, _DYNAMIC_SHARED, shared_bytes - static)
        if static + launch.shared_bytes > _USUAL_SHARED:
            driver.call("cuFuncSetAttribute", function, _CARVEOUT, 100)
        self._allow_large_clusters()
        self._grid = [c_uint(size) for size in launch.grid]
        self._block = [c_uint(size) for size in launch.block]
        self._shared_bytes = launch.shared_bytes
        self._is_cooperative = launch.is_cooperative
        self._values: list[Any] = [
            (ctypes.c_char * len(a)).from_buffer_copy(a) if isinstance(a, bytes) else c_uint64()
            for a in launch.arguments
        ]
        self._pointers = [
            (value, argument)
            for value, argument in zip(self._values, launch.arguments, strict=True)
            if isinstance(argument, int)
        ]
        addresses = (ctypes.addressof(value) for value in self._values)
        self._parameters = (c_void_p * len(self._values))(*addresses)

    def enqueue(self, queue: int, addresses: list[int]) -> None:
        """Start the kernel on buffers at `addresses`, which the caller's lock protects.

        Raises:
            NoKernelError: the driver refuses it.
        """
        for value, buffer in self._pointers:
            value.value = addresses[buffer]
        setup = (*self._grid, *self._block, self._shared_bytes, c_void_p(queue), self._parameters)
        if self._is_cooperative:
            self._driver.call("cuLaunchCooperativeKernel", self._function, *setup)
        else:
            self._driver.call("cuLaunchKernel", self._function, *setup, None)

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
        error = getattr(self.api, name)(*arguments)
        if error != 0:
            text = c_char_p()
            self.api.cuGetErrorName(error, byref(text))
            raise NoKernelError(f"{name}: {(text.value or b'unknown').decode()} ({error})")


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
        self._driver = driver
        self._lock = threading.Lock()
        self._index = index
        self._ordinal = c_int()
        driver.call("cuDeviceGet", byref(self._ordinal), index)
        architecture = f"sm_{self._fact(_MAJOR)}{self._fact(_MINOR)}"
        if ARCHITECTURE.rstrip("af") != architecture:
            raise NoKernelError(f"kernels are for {ARCHITECTURE}, and this GPU is {architecture}")
        self._context = c_void_p()
        driver.call("cuDevicePrimaryCtxRetain", byref(self._context), self._ordinal)
        self._shared_bytes = self._fact(_SHARED_BYTES)
        self.limits = Limits(
            compute_units=self._fact(_COMPUTE_UNITS),
            sub_group_size=LIMITS["sub_group_size"],
            shared_bytes=min(LIMITS["shared_bytes"], self._shared_bytes),
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
        with self._current():
            self._driver.call("cuModuleLoadDataEx", byref(program), code, 0, None, None)
        return program

    def bind(self, program: c_void_p, launch: Launch) -> GpuLaunch:
        """Return a launch of a program's kernel.

        Raises:
            NoKernelError: the kernel does not take it.
        """
        with self._current():
            return GpuLaunch(self._driver, program, launch, self._shared_bytes)

    def run(self, launches: list[GpuLaunch], addresses: list[int]) -> None:
        """Start launches in order, behind what torch has queued."""
        queue = current_queue(self._index)
        with torch.cuda.device(self._index):
            self.enqueue(launches, addresses, queue)

    def enqueue(self, launches: list[GpuLaunch], addresses: list[int], queue: int) -> None:
        """Start launches in order in a queue; the GPU is the current one."""
        with self._lock:
            # A thread may have no context yet.
            self._driver.call("cuCtxSetCurrent", self._context)
            for launch in launches:
                launch.enqueue(queue, addresses)

    @contextlib.contextmanager
    def _current(self) -> Iterator[None]:
        """Make the GPU the current one for a while."""
        has_torch = torch.cuda.is_available()
        with torch.cuda.device(self._index) if has_torch else contextlib.nullcontext():
            self._driver.call("cuCtxSetCurrent", self._context)
            yield

    def _fact(self, name: int) -> int:
        value = c_int()
        self._driver.call("cuDeviceGetAttribute", byref(value), name, self._ordinal)
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
