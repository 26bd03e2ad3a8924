"""Devices, what they can do, and what an evaluator offers.

Facts are queried from the device, never taken from a list of known models.
"""

from dataclasses import dataclass
from typing import Final

from kernel_foundry.domain.language import Language


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRate:
    """What the matrix units do in one format, dense, with sums in float32 (int32 for int8)."""

    format: str
    """Of the operands: "fp16", "bf16", "tf32", "fp8_e4m3" or "int8"."""
    flops_per_second: float
    """Two operations for each multiply-add."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peaks:
    """Measured limits of a device, taken once with our own kernels and cached."""

    bandwidth_bytes_per_second: float
    """Streaming copy, bytes read plus written, of data larger than the last-level cache."""
    cache_bandwidth_bytes_per_second: float
    """The same for data that stays in the last-level cache."""
    flops_per_second: float
    """float32 fused multiply-adds, two operations each."""
    launch_ns: float
    """Submit and wait of an empty kernel."""
    read_bandwidth_bytes_per_second: float
    """Reading alone, of data larger than the last-level cache."""
    matrix_rates: tuple[MatrixRate, ...] = ()
    """One for each format that the device has matrix units for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitLimits:
    """What one compute unit holds at once; occupancy follows from it."""

    registers: int
    """32-bit registers."""
    shared_bytes: int
    work_items: int
    groups: int
    """Work-groups, whatever their size."""


_MOST_FLUSHED: Final = 256 << 20
"""Bytes. A cache that many cores share has more, but keeps little behind that: on a Xeon with
480 MiB, a MiB took 84 µs to read again behind 256 MiB, and 88 µs behind all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSpec:
    """A device and the facts that prompts, plans and bounds need."""

    id: str
    """Such as "sycl:0", "cuda:1" or "null:0"; a fleet's has the name of its evaluator behind it, as
    in "cuda:1@gpuhost:50051"."""
    language: Language
    name: str
    vendor: str
    architecture: str
    driver_version: str
    compute_units: int
    sub_group_size: int
    """Preferred (widest common) sub-group or warp size, in work-items."""
    max_block: int
    """Most work-items of a work-group."""
    shared_bytes: int
    """Local memory of a work-group, opt-in maximum."""
    memory_bytes: int
    cache_bytes: int
    """Last-level cache."""
    peaks: Peaks | None = None
    """None until measured."""
    unit_limits: UnitLimits | None = None
    """None where the device does not tell (CPUs)."""
    clock_policy: str = ""
    """How its clocks are set, in its operator's words ("locked at 1980 MHz"); empty: not known."""

    @property
    def kind(self) -> str:
        """Kind of the device, such as "sycl", "cuda" or "null"."""
        return self.id.partition(":")[0]

    @property
    def model_text(self) -> str:
        """Its model and driver, as the evidence of verdicts names it."""
        return f"{self.name}, driver {self.driver_version}"

    @property
    def flush_bytes(self) -> int:
        """How much is read to empty the caches, and how much data a pool of timed sets holds."""
        return min(2 * self.cache_bytes, _MOST_FLUSHED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Availability:
    """Whether a device kind or a profiler can be used here, and if not, why."""

    kind: str
    """"sycl", "cuda" or "null"; of a profiler "cuda:0 ncu"."""
    available: bool
    reason: str = ""
    """Loader's or driver's own words; empty when available."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolationLimit:
    """One amount that a locked process cannot exceed."""

    name: str
    """With its unit: "memory_bytes", "cpu_seconds", "open_files"."""
    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolationReport:
    """What locks one builder or runner in, as it found it in force."""

    mechanisms: tuple[str, ...]
    """Such as "bubblewrap", "landlock", "seccomp", "rlimits"; empty: none."""
    missing: tuple[str, ...] = ()
    """What could not be had, each with its reason."""
    process: str = ""
    """Which it is: "sycl builder", "cuda runner", "sycl library runner"; "" for all of them."""
    rules: tuple[str, ...] = ()
    """What the mechanisms do, each in one sentence."""
    limits: tuple[IsolationLimit, ...] = ()

    @property
    def is_sufficient(self) -> bool:
        """Whether files, processes and network are all locked."""
        files = {"bubblewrap", "landlock"} & set(self.mechanisms)
        return bool(files) and "seccomp" in self.mechanisms


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLoad:
    """How busy a device is."""

    device: str
    """Its id."""
    pending: int
    """Calls that use it or wait for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What one evaluator offers."""

    devices: tuple[DeviceSpec, ...]
    availability: tuple[Availability, ...]
    isolation: IsolationReport
    """Of all processes that meet a candidate: the mechanisms that they have in common."""
    versions: tuple[str, ...] = ()
    """Such as "torch 2.13.0+cpu"; for people and evidence, never parsed."""
    processes: tuple[IsolationReport, ...] = ()
    """The isolation of each kind of process that meets a candidate."""
    profilers: tuple[Availability, ...] = ()
    """One for each device: the counters that profiles read there, or why there are none; its kind
    is the device and the tool, such as "cuda:0 ncu"."""
    loads: tuple[DeviceLoad, ...] = ()
    """One for each device; empty where it is not known."""
