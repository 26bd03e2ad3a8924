"""Kernels on the CPU: SPIR-V through Intel's OpenCL runtime, with nothing in between.

The runtime comes with `pip install intel-opencl-rt==2026.1.2`, or lies where the loader finds
`libintelocl.so`.
"""

import contextlib
import ctypes
import importlib.metadata
import math
import os
import threading
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, Final

import torch

from kernel_foundry.sdk.export.runtime.plan import Launch, Limits, NoKernelError
from kernel_foundry.sdk.export.runtime.task import LIMITS

_CPU: Final = 2
_COMPUTE_UNITS: Final = 0x1002
_MAX_BLOCK: Final = 0x1004
_LOCAL_BYTES: Final = 0x1023
_THREADS: Final = "DPCPP_CPU_NUM_CUS"
_FORKED: Final = "this process was forked after kernels ran: start it by spawn"


class CpuLaunch:
    """One launch with its numbers; it is given the addresses of its buffers in each call.

    Args:
        api: The runtime's library.
        program: What holds the kernel.
        launch: Which kernel, and how.
    """

    def __init__(self, api: Any, program: c_void_p, launch: Launch) -> None:
        self._api = api
        self._name = launch.kernel
        error = c_int()
        found = api.clCreateKernel(program, f"__sycl_kernel_{launch.kernel}".encode(), byref(error))
        _check(error.value, f"clCreateKernel of {launch.kernel}")
        self._kernel = c_void_p(found)
        self._dimensions = launch.dimensions
        # OpenCL has the same order as plans: x first, which is SYCL's last dimension.
        sizes = [g * b for g, b in zip(launch.grid, launch.block, strict=True)]
        self._global = (c_size_t * 3)(*sizes)
        self._local = (c_size_t * 3)(*launch.block)
        self._pointers: list[tuple[int, int]] = []
        position = 0
        for argument in launch.arguments:
            if isinstance(argument, bytes):
                self._set(position, len(argument), c_char_p(argument))
            elif isinstance(argument, int):
                self._pointers.append((position, argument))
            else:
                # A local accessor is four arguments: the memory, its two ranges and its offset.
                element_bytes, count = argument
                self._set(position, element_bytes * count, None)
                for value in (count, count, 0):
                    position += 1
                    self._set(position, 8, byref(c_uint64(value)))
            position += 1

    def enqueue(self, queue: c_void_p, addresses: tuple[int, ...]) -> None:
        """Start the kernel on buffers at `addresses`, which the caller's lock protects.

        Raises:
            NoKernelError: the runtime refuses it.
        """
        api, kernel = self._api, self._kernel
        for position, buffer in self._pointers:
            api.clSetKernelArgMemPointerINTEL(kernel, position, addresses[buffer])
        error = api.clEnqueueNDRangeKernel(
            queue, kernel, self._dimensions, None, self._global, self._local, 0, None, None
        )
        _check(error, f"launch of {self._name}")

    def _set(self, position: int, size: int, value: Any) -> None:
        error = self._api.clSetKernelArg(self._kernel, position, size, value)
        _check(error, f"argument {position} of {self._name}")


class CpuRow:
    """Launches that follow one another."""

    def __init__(self, device: "CpuDevice", launches: tuple[CpuLaunch, ...]) -> None:
        self._device = device
        self._launches = launches

    def run(self, *addresses: int) -> None:
        """Run the kernels in order and wait for them.

        Raises:
            NoKernelError: the runtime refuses one, or its threads are another process's.
        """
        self._device.run(self._launches, addresses)


class CpuDevice:
    """The CPU as an OpenCL device, with as many threads as torch has.

    Raises:
        NoKernelError: there is no runtime, or it has no CPU.
    """

    is_host = True
    alignment = 64
    """Bytes that addresses of tensors are a multiple of: torch's own are."""

    def __init__(self) -> None:
        self._api = api = _runtime()
        self._process = os.getpid()
        self._lock = threading.Lock()
        before = os.environ.get(_THREADS)
        os.environ[_THREADS] = str(torch.get_num_threads())
        try:
            platform, device, count, error = c_void_p(), c_void_p(), c_uint32(), c_int()
            _check(api.clGetPlatformIDs(1, byref(platform), byref(count)), "clGetPlatformIDs")
            found = api.clGetDeviceIDs(platform, c_uint64(_CPU), 1, byref(device), byref(count))
            _check(found, "clGetDeviceIDs")
            context = api.clCreateContext(None, 1, byref(device), None, None, byref(error))
            _check(error.value, "clCreateContext")
        finally:
            del os.environ[_THREADS]
            if before is not None:
                os.environ[_THREADS] = before
        self._device, self._context = device, c_void_p(context)
        queue = api.clCreateCommandQueueWithProperties(context, device, None, byref(error))
        _check(error.value, "clCreateCommandQueueWithProperties")
        self._queue = c_void_p(queue)
        self.limits = Limits(
            compute_units=self._fact(_COMPUTE_UNITS, c_uint32()),
            sub_group_size=LIMITS["sub_group_size"],
            shared_bytes=min(LIMITS["shared_bytes"], self._fact(_LOCAL_BYTES, c_uint64())),
            max_block=min(LIMITS["max_block"], self._fact(_MAX_BLOCK, c_size_t())),
        )

    def load(self, code: bytes) -> c_void_p:
        """Return the program that SPIR-V is built into for this CPU.

        Raises:
            NoKernelError: it cannot be built.
        """
        error = c_int()
        made = self._api.clCreateProgramWithIL(self._context, code, len(code), byref(error))
        _check(error.value, "clCreateProgramWithIL")
        program = c_void_p(made)
        built = self._api.clBuildProgram(program, 1, byref(self._device), b"", None, None)
        _check(built, "clBuildProgram")
        return program

    def bind(self, program: c_void_p, launches: tuple[Launch, ...], _count: int) -> CpuRow:
        """Return launches of a program's kernels.

        Raises:
            NoKernelError: a kernel does not take it.
        """
        for launch in launches:
            items = math.prod(g * b for g, b in zip(launch.grid, launch.block, strict=True))
            if items >= 1 << 31:
                raise NoKernelError(f"{launch.kernel} would have {items} work-items")
        return CpuRow(self, tuple(CpuLaunch(self._api, program, launch) for launch in launches))

    def run(self, launches: tuple[CpuLaunch, ...], addresses: tuple[int, ...]) -> None:
        """Run launches in order and wait for them.

        Raises:
            NoKernelError: the runtime refuses one, or its threads are another process's.
        """
        if os.getpid() != self._process:
            raise NoKernelError(_FORKED)
        with self._lock:
            for launch in launches:
                launch.enqueue(self._queue, addresses)
        _check(self._api.clFinish(self._queue), "clFinish")

    def is_current(self) -> bool:
        """Return True: torch always works on the CPU."""
        return True

    def current(self) -> contextlib.AbstractContextManager[None]:
        """Do nothing."""
        return contextlib.nullcontext()

    def _fact(self, name: int, value: Any) -> int:
        size = ctypes.sizeof(value)
        found = self._api.clGetDeviceInfo(self._device, name, size, byref(value), None)
        _check(found, "clGetDeviceInfo")
        return int(value.value)


_devices: dict[int, CpuDevice] = {}
_opening = threading.Lock()


def device_of(_tensor: torch.Tensor) -> CpuDevice:
    """Return the device of a tensor on the CPU; the first call opens it.

    Raises:
        NoKernelError: there is none, or this process was forked from one that has it.
    """
    with _opening:
        own = _devices.get(os.getpid())
        if own is None:
            if _devices:
                raise NoKernelError(_FORKED)
            own = _devices[os.getpid()] = CpuDevice()
        return own


def _runtime() -> Any:
    api = None
    for path in (*_installed(), "libintelocl.so"):
        try:
            api = ctypes.CDLL(path)
            break
        except OSError as error:
            reason = str(error)
    if api is None:
        raise NoKernelError(f"no OpenCL CPU runtime (pip install intel-opencl-rt): {reason}")
    for name in (
        "clCreateContext",
        "clCreateProgramWithIL",
        "clCreateKernel",
        "clCreateCommandQueueWithProperties",
    ):
        getattr(api, name).restype = c_void_p
    pointer = c_void_p
    api.clCreateCommandQueueWithProperties.argtypes = [pointer] * 4
    api.clCreateProgramWithIL.argtypes = [pointer, c_char_p, c_size_t, pointer]
    api.clCreateKernel.argtypes = [pointer, c_char_p, pointer]
    api.clGetDeviceInfo.argtypes = [pointer, c_uint32, c_size_t, pointer, pointer]
    api.clSetKernelArg.argtypes = [pointer, c_uint32, c_size_t, pointer]
    api.clSetKernelArgMemPointerINTEL.argtypes = [pointer, c_uint32, pointer]
    api.clEnqueueNDRangeKernel.argtypes = [pointer, pointer, c_uint32, *[pointer] * 3, c_uint32,
                                           pointer, pointer]  # fmt: skip
    api.clFinish.argtypes = [pointer]
    return api


def _installed() -> list[str]:
    try:
        listed = importlib.metadata.files("intel-opencl-rt") or ()
    except importlib.metadata.PackageNotFoundError:
        return []
    return [os.path.realpath(str(f.locate())) for f in listed if f.name == "libintelocl.so"]


def _check(error: int, call: str) -> None:
    if error != 0:
        raise NoKernelError(f"{call}: OpenCL error {error}")
