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
_COOPERATIVE: Final = 2
_USUAL_SHARED: Final = 48 << 10
_DRIVERS: Final = (
    "libcuda.so.1",
    "/usr/local/nvidia/lib64/libcuda.so.1",
    "/usr/lib/wsl/lib/libcuda.so.1",
)


class LaunchConfig(ctypes.Structure):
    """The driver's description of a launch."""

    _fields_ = (
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared_bytes", c_uint),
        ("queue", c_void_p),
        ("attributes", c_void_p),
        ("attribute_count", c_uint),
    )


class LaunchAttribute(ctypes.Structure):
    """One more fact of a launch."""

    _fields_ = (("name", c_uint), ("_gap", c_uint), ("value", c_uint64 * 8))


class GpuLaunch:
    """One launch with its numbers.

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
        self._launch = launch
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
        self._attributes = (LaunchAttribute * 1)(LaunchAttribute(name=_COOPERATIVE))
        self._attributes[0].value[0] = 1

    def call_with(self, addresses: Any, config: LaunchConfig) -> tuple[Any, ...]:
        """Return the arguments of the driver's call that starts the kernel.

        Args:
            addresses: Of buffers, as they are when the call is made.
            config: Is filled in, but for the queue.
        """
        launch = self._launch
        config.grid[:], config.block[:] = launch.grid, launch.block
        config.shared_bytes = launch.shared_bytes
        config.attributes = ctypes.addressof(self._attributes)
        config.attribute_count = int(launch.is_cooperative)
        places = [
            ctypes.addressof(addresses) + 8 * argument if value is None else ctypes.addressof(value)
            for value, argument in zip(self._values, launch.arguments, strict=True)
        ]
        # As the call takes them, so that it has nothing to convert.
        function = c_void_p.from_param(self._function.value or 0)
        return byref(config), function, byref((c_void_p * len(places))(*places)), None

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


class ArgumentBlock:
    """What the driver reads when a row is started: only addresses and queue change.

    Args:
        launches: Of the row.
        count: Of addresses.
    """

    __slots__ = ("_configs", "addresses", "calls", "layout", "queue")

    def __init__(self, launches: list[GpuLaunch], count: int) -> None:
        self.addresses: Any = (c_uint64 * count)()
        """Of buffers."""
        self._configs = [LaunchConfig() for _ in launches]
        pairs = zip(launches, self._configs, strict=True)
        self.calls = [launch.call_with(self.addresses, config) for launch, config in pairs]
        """Arguments of the driver's call for each launch."""
        self.queue = 0
        """Where the launches go."""
        self.layout = 0
        """Number of the layout of weights whose addresses are here."""

    def enter(self, queue: int) -> None:
        """Let the launches go to a queue."""
        for config in self._configs:
            config.queue = queue
        self.queue = queue


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
        self._launches = [
            GpuLaunch(device.driver, program, launch, device.shared_bytes) for launch in launches
        ]
        self._count = count
        self.start = device.driver.start
        """The driver's call that starts a kernel."""
        self.spare = [self.new_block()]
        """Blocks that no call is using. Each call takes one and gives it back: no thread waits."""

    def new_block(self) -> ArgumentBlock:
        """Return one more block."""
        return ArgumentBlock(self._launches, self._count)

    def run(self, *addresses: int) -> None:
        """Start the kernels in order, behind what torch has queued; the GPU is the current one.

        Raises:
            NoKernelError: the driver refuses one.
        """
        try:
            block = self.spare.pop()
        except IndexError:
            block = self.new_block()
        queue = current_queue(self._index)
        if queue != block.queue:
            block.enter(queue)
        block.addresses[:] = addresses
        for arguments in block.calls:
            if self.start(*arguments):
                self.start_again(arguments)
        self.spare.append(block)

    def start_again(self, arguments: tuple[Any, ...]) -> None:
        """Start a kernel that the driver has refused: a thread may have no context yet.

        Raises:
            NoKernelError: it refuses once more.
        """
        self._driver.call("cuCtxSetCurrent", self._context)
        self._driver.check(self.start(*arguments), "cuLaunchKernelEx")


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
        self.start: Any = getattr(self.api, "cuLaunchKernelEx", None)
        """Its call that starts a kernel."""
        if self.start is None:
            raise NoKernelError("the CUDA driver is older than 11.8")
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
