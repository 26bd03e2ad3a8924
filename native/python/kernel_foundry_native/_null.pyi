"""The null device kind: takes any source, runs for a time that depends on the source alone.

What it offers is what every device kind offers. Its kernels `null_copy` and `null_relu` do what
they are called, on (float32 in, float32 out, count); any other does nothing.
"""

from collections.abc import Callable, Sequence

from kernel_foundry_native._core import Comparison
from kernel_foundry_native._core import Measurement as Measurement
from kernel_foundry_native._core import MeasureOptions as MeasureOptions

class Argument:
    """One kernel argument."""

class ObjectCode:
    """Built code for any process."""

    @property
    def code(self) -> bytes:
        """SPIR-V for SYCL, a cubin for CUDA."""

    @property
    def assembly(self) -> bytes:
        """PTX for CUDA; empty where `code` itself is read."""

    @property
    def log(self) -> str:
        """What the compiler said."""

    @property
    def build_ns(self) -> float:
        """Time that the build took."""

class Compiler:
    """Source text to object code; the CUDA one needs no GPU and no driver."""

    @property
    def architecture(self) -> str:
        """What it builds for."""

    @property
    def compiler_version(self) -> str:
        """Changes whenever the same source may build to other code."""

    def compile(self, *, source: str, options: Sequence[str], kernels: Sequence[str]) -> ObjectCode:
        """Build a source text.

        Raises:
            CompileError: it does not compile, or has not all of `kernels`.
        """

    def release(self) -> None:
        """Drop what must be gone before the process ends; nothing may be used afterwards."""

class Program:
    """Kernels loaded on a device."""

    @property
    def kernel_names(self) -> list[str]:
        """In the order asked for."""

    @property
    def resources(self) -> list[tuple[str, int, int, int, int]]:
        """For each kernel its name, registers, static shared and local bytes, largest block.

        Empty where the driver does not say.
        """

class Buffer:
    """Memory of the device; given back when the object goes."""

    @property
    def address(self) -> int:
        """Of the first byte."""

    @property
    def size_bytes(self) -> int:
        """As asked for."""

class WatchedZones:
    """Closed pages of host memory."""

    def close(self) -> None:
        """Open all of them for good; idempotent."""

class Trespass:
    """An access to pages that were closed; it was let pass, and all that followed there."""

    @property
    def name(self) -> str:
        """Of the tensor that the pages hold, or lie behind."""

    @property
    def is_readable(self) -> bool:
        """Whether the pages could be read."""

    @property
    def is_write(self) -> bool:
        """Whether it was a store."""

    @property
    def is_hidden(self) -> bool:
        """Whether a cover hid the pages."""

class Cover:
    """Memory that kernels cannot see for a while."""

    def hide(self) -> None:
        """Close the pages, or put random bits over them."""

    def show(self) -> None:
        """Make all as it was; idempotent."""

class SharedMemory:
    """Device memory that another process opens by its handle."""

    @property
    def address(self) -> int:
        """In this process; 0 when closed."""

    @property
    def size_bytes(self) -> int:
        """As asked for."""

    @property
    def handle(self) -> bytes:
        """For `Device.open_shared` in another process."""

    def close(self) -> None:
        """Give it back; may be called again."""

class Device:
    """An open device."""

    def cover(self, ranges: Sequence[tuple[int, int, bool, str]]) -> Cover:
        """Return a cover of (address, bytes, is_read_only, name of a tensor), each in own pages."""

    @property
    def name(self) -> str:
        """As the driver calls it."""

    @property
    def vendor(self) -> str:
        """As the driver calls it."""

    @property
    def architecture(self) -> str:
        """What object code is built for."""

    @property
    def driver_version(self) -> str:
        """As the driver says it."""

    @property
    def compute_units(self) -> int:
        """Threads on a CPU."""

    @property
    def sub_group_sizes(self) -> list[int]:
        """Work-items of a sub-group that kernels may ask for."""

    @property
    def max_block(self) -> int:
        """Most work-items of a work-group."""

    @property
    def shared_bytes(self) -> int:
        """Local memory of a work-group."""

    @property
    def memory_bytes(self) -> int:
        """All of its memory."""

    @property
    def cache_bytes(self) -> int:
        """Last-level cache."""

    @property
    def unit_limits(self) -> tuple[int, int, int, int] | None:
        """Registers, shared bytes, work-items and work-groups of one compute unit."""

    @property
    def uuid(self) -> str:
        """As the vendor's tools name the device; empty where there is none."""

    @property
    def stream(self) -> int:
        """Handle of the driver's stream, for libraries that enqueue their own work; 0: none."""

    @property
    def is_host_memory(self) -> bool:
        """Whether plain host addresses are the device's."""

    @property
    def unit_bytes(self) -> int:
        """`allocate` gives whole ones of so many bytes: kernels can write to all of it."""

    @property
    def times_by_events(self) -> bool:
        """Whether samples are spans between events, not times of the host's clock."""

    @property
    def event_overhead_ns(self) -> float:
        """What a pair of events shows beyond the work between them."""

    def load(self, *, code: bytes, kernels: Sequence[str]) -> Program:
        """Load built code.

        Raises:
            LoadError: the driver does not take it.
        """

    def allocate(self, size_bytes: int) -> Buffer:
        """Return private memory, its content unspecified.

        Raises:
            DriverError: there is none.
        """

    def fill(self, address: int, size_bytes: int, byte: int) -> None:
        """Fill a range with one byte; done when it returns."""

    def copy(self, to: int, from_: int, size_bytes: int) -> None:
        """Copy between addresses that do not overlap; done when it returns."""

    def fill_all(self, ranges: Sequence[tuple[int, int, int]]) -> None:
        """Enqueue fills of (address, size_bytes, byte)."""

    def find_other(self, ranges: Sequence[tuple[int, int, int]]) -> int | None:
        """Wait; return the index of a range of (address, size_bytes, byte) with another byte."""

    def watch(self, zones: Sequence[tuple[int, int, bool, str]]) -> WatchedZones:
        """Close pages of host memory to kernels: (address, size_bytes, is_readable, tensor's name).

        `fill` and `copy` of this device still write where pages are readable.

        Raises:
            DriverError: the system refuses.
        """

    @property
    def first_trespass(self) -> Trespass | None:
        """What kernels did first in closed pages since the process began."""

    def scrub(self) -> None:
        """Enqueue what overwrites the processors' own memory."""

    def create_shared(self, size_bytes: int) -> SharedMemory:
        """Return zeros that other processes can open.

        Raises:
            DriverError: there is no memory, or this device's is shared by descriptor.
        """

    def open_shared(self, handle: bytes, size_bytes: int) -> SharedMemory:
        """Open what another process has created.

        Raises:
            DriverError: the driver refuses it, or memory is shared by descriptor.
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
        scale: int = 0,
        groups: int = 1,
        inner: int = 1,
    ) -> Comparison:
        """Do on the device's memory what `_core.compare` does on the host's."""

    def same_bytes(self, a: int, b: int, size_bytes: int) -> bool:
        """Return whether two ranges hold the same."""

    def measure_callable(
        self,
        call: Callable[[int], object],
        options: MeasureOptions,
        *,
        flush_bytes: int,
        redraw: tuple[int, list[tuple[str, int, int]], list[list[int]]] | None = None,
    ) -> Measurement:
        """Measure `call(set)`, which works on the host or enqueues on the device's stream.

        `redraw`: as `_core.measure_callable`.
        """

    def redraw(
        self,
        address: int,
        *,
        dtype: str,
        size_bytes: int,
        key: int,
        number: int,
        undo_index: int = 0,
        apply_index: int = 0,
    ) -> None:
        """Bring a tensor in the device's memory from one call's values to another's.

        The arguments are those of `_core.redraw`.
        """

    def synchronize(self) -> None:
        """Wait for all that was queued.

        Raises:
            LaunchError: work failed on the device.
        """

    def release(self) -> None:
        """Drop queue and context, so that the process can end; nothing may be used afterwards."""

class LaunchSequence:
    """Launches replayed natively on sets of addresses.

    Args:
        device: Where they run.
    """

    def __init__(self, device: Device) -> None: ...
    def launch(
        self,
        *,
        program: Program,
        kernel: str,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        dimensions: int,
        arguments: Sequence[Argument],
        shared_bytes: int = 0,
        cooperative: bool = False,
    ) -> None:
        """Append a launch; grid counts work-groups, x is the fastest dimension."""

    def clear(self, buffer: int, size_bytes: int) -> None:
        """Append setting a buffer to zero."""

    def call(self, function: Callable[[int], int], buffer: int = -1) -> None:
        """Append a host function that enqueues its work on the device's stream.

        Args:
            function: Called with the set.
            buffer: Whose address it returns, for the steps that follow; -1: of none.
        """

    def bind(self, set: int, addresses: Sequence[int]) -> None:
        """Give set `set` one address for each buffer index; sets are bound in order."""

    def run(self, set: int) -> None:
        """Run every step on a set and wait.

        Raises:
            LaunchError: the driver refuses a launch.
        """

    def enqueue(self, set: int) -> None:
        """Queue every step on a set, without waiting.

        Raises:
            LaunchError: the driver refuses a launch.
        """

    def profile(self, set: int, *, flush_bytes: int = 0) -> list[float]:
        """Run step by step and return the nanoseconds of each.

        Args:
            set: Which set.
            flush_bytes: Read before the first step to empty the caches; 0: they are left as is.
        """

    def capture(self, set: int) -> None:
        """Record the steps as a graph that is replayed from then on, where that can be."""

    @property
    def last_addresses(self) -> list[int]:
        """Addresses of the last run, with the results of its calls."""

    def measure(
        self,
        options: MeasureOptions,
        *,
        flush_bytes: int,
        outputs: Sequence[tuple[int, int]],
        keep_into: Sequence[Sequence[int]],
        scratch: Sequence[tuple[int, int]] = ...,
        redraw: tuple[int, list[tuple[str, int, int]], list[list[int]]] | None = None,
        preparation: LaunchSequence | None = None,
        prepared: Sequence[tuple[int, int]] = ...,
        weights: Sequence[int] = ...,
        sealed_into: Sequence[Sequence[int]] = ...,
        guards: Sequence[tuple[int, int, int]] = ...,
        library_memory: Callable[[], Sequence[tuple[int, int]]] | None = None,
        guests: tuple[
            list[tuple[int, int]], list[list[int]], list[list[int]], list[int], list[list[int]]
        ]
        | None = None,
    ) -> Measurement:
        """Measure the sequence.

        Args:
            options: How; its `keep_count` is the length of `keep_into`.
            flush_bytes: Data to displace from the caches before each sample.
            outputs: (buffer, size_bytes) of each output, poisoned before each call.
            keep_into: For each kept call one address for each output.
            scratch: (buffer, size_bytes) of what is filled with some byte before each call.
            redraw: As `_core.measure_callable`.
            preparation: Run on the same sets before each call; its time is taken for itself.
            prepared: (buffer, size_bytes) of what it makes.
            weights: Numbers of the redrawn tensors that it may read; the others come after it.
            sealed_into: For each set, addresses of a copy of that.
            guards: (address, size_bytes, byte) of what gets its own byte again before each call.
            library_memory: Returns (address, size_bytes) of what libraries hold; asked before each
                call, and filled with some byte.
            guests: Inputs of calls that are made among the timed ones, at random places: (number,
                size_bytes) of all tensors of a set, their addresses by set, by guest, and where a
                set's own are meanwhile; by guest one address for each output.

        Raises:
            LaunchError: the driver refuses a launch.
        """

def buffer_argument(index: int) -> Argument:
    """Return a pointer argument: a bound buffer, by index."""

def scalar_argument(ctype: str, value: float) -> Argument:
    """Return a number argument of a C type such as "int32"."""

def local_argument(element_bytes: int, count: int) -> Argument:
    """Return local memory of a work-group."""

def device_count() -> int:
    """Return how many devices can be opened.

    Raises:
        DriverUnavailableError: the driver does not answer.
    """

def open_device(index: int = 0) -> Device:
    """Open a device.

    Raises:
        DriverUnavailableError: there is no such device.
    """

def open_compiler(index: int = 0, architecture: str = "") -> Compiler:
    """Open a compiler.

    Args:
        index: Device that it builds for.
        architecture: Its architecture; "" asks the driver. CUDA needs no device when it is given.

    Raises:
        DriverUnavailableError: there is no such device, or no compiler.
        ValueError: it does not build for this architecture.
    """
