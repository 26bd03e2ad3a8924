"""The messages between supervisor and runner."""

from dataclasses import dataclass

from evaluator_svc.messages.draw import Draw
from evaluator_svc.messages.item_order import ItemOrder
from evaluator_svc.messages.locked import WorkloadNames
from evaluator_svc.messages.measurement import KeptOutput, MeasurementSettings
from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.evaluation import ClockBlock, Setting, StopReason
from kernel_foundry.domain.kernel_time import KernelTime


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRequest:
    """Load object code (one blob for each unit) and bind the plan to every workload.

    A runner takes several, one for each configuration of a candidate.
    """

    source: KernelSource
    configuration: tuple[Setting, ...]
    """A value for every TUNE name."""
    device: DeviceSpec
    workloads: tuple[WorkloadNames, ...]
    kernels: tuple[tuple[str, ...], ...]
    """Names of each unit's kernels."""
    unit_of_workload: tuple[int, ...]
    library_ops: tuple[str, ...] = ()
    """Library calls that the task allows."""
    tf32: bool = False
    """Whether they may use TF32 on a GPU."""
    number: int = 0
    """Names the configuration in later requests."""
    forget: tuple[int, ...] = ()
    """Configurations that are not asked about again."""
    runs: "tuple[RunRequest, ...]" = ()
    """Runs in the usual order that follow at once: a sweep has many configurations. Descriptors of
    their draws travel beside this message, unless the runner has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BindRequest:
    """Bind the prepared plan to every workload without a device; to a builder."""

    library_ops: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BindReply:
    """Answer to `BindRequest`."""

    workloads: "tuple[BoundWorkload, ...]"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelGrid:
    """How many work-groups a kernel is launched with."""

    kernel: str
    groups: tuple[int, int, int]
    """In x, y and z, of each the most among its launches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundWorkload:
    """A plan bound to one workload."""

    workload: str
    launch_count: int
    """Kernels launched by one call."""
    scratch_count: int
    scratch_bytes: int
    group_count: int
    """Work-groups of the launch that has most work-items."""
    group_size: int
    """Work-items in a group of that launch."""
    kernels: tuple[str, ...]
    """Names of the kernels it launches, without repetition, in order."""
    library_call_count: int = 0
    """Library calls made by one call of `launch`."""
    prepared_bytes: int = 0
    """Memory that `prepare` fills."""
    prepare_traffic_bytes: int = 0
    """Bytes that a change of layout moves: twice the smaller of the weights that `prepare`
    names and of what it makes for `launch`."""
    prepared_count: int = 0
    """Tensors that it makes for `launch`."""
    result_bytes: int = 0
    """Memory of library calls' results."""
    main_kernel: str = ""
    """Kernel of the launch that has most work-items."""
    main_shared_bytes: int = 0
    """Dynamic shared memory of that launch."""
    grids: tuple[KernelGrid, ...] = ()
    """Grid of each kernel that it launches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReply:
    """Answer to `LoadRequest`."""

    workloads: tuple[BoundWorkload, ...]
    load_ms: float
    bind_ms: float
    runs: "tuple[RunReply, ...]" = ()
    """Answers to the runs that were asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """Run a workload on every seed's inputs, once into each output slot.

    The shared buffers' descriptors, in order of the seeds, travel beside it where the draw has no
    handles and the runner does not have it yet; it keeps the buffers for `PoolRequest`.
    """

    draw: Draw
    without_kernels: bool = False
    """Run once into the first slots with copies in place of kernels, to find decoys; such runs come
    before the real one."""
    choice: int = 0
    """Which copies, where there is a choice."""
    once: bool = False
    """Run once into the first slots, and keep nothing of the draw."""
    refilled: bool = False
    """The buffers hold other inputs and parameters than in the run before."""
    reordered: bool = False
    """Run with work-groups, and work-items where that can be, in reverse order; after a run in the
    usual one. SYCL only."""
    into_last: bool = False
    """Run once into the last slots; times that are taken afterwards leave them as they are, unless
    the shared buffers themselves are timed."""
    number: int = 0
    """Of the configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReply:
    """Answer to a `RunRequest` without `once`, `without_kernels` and `reordered`."""

    run_ns: float
    """The last run, by the runner's clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReorderReply:
    """Answer to a `RunRequest` in reverse order."""

    reverses_groups: bool
    """False: the object code reads its numbers in a way of its own, and nothing was run."""
    items: ItemOrder
    """The order of the work-items in the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WithoutKernels:
    """Answer to a `RunRequest` without kernels."""

    choice_count: int
    """How many choices of copies there are, at least 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAgainRequest:
    """Run seeds whose inputs have changed in place, as they were timed, into the first slots."""

    workload: str
    seeds: tuple[int, ...]
    number: int = 0
    """Of the configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRequest:
    """Make private sets of inputs and outputs for timing, from the shared ones.

    They are for all configurations; this one is bound to them, others when they are first timed.
    """

    workload: str
    wanted_bytes: int
    """The pool should hold at least this much data."""
    limit_bytes: int
    """It may not hold more than this, except that there is always one set."""
    number: int = 0
    """Of the configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolReady:
    """The pool is filled."""

    set_count: int
    pool_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRequest:
    """Take one measurement on the pool.

    The first descriptor beside it is that of the random numbers that decide about calls
    (`evaluator_svc.messages.call_draws`): kernels on the CPU can read what this message says.
    """

    workload: str
    settings: MeasurementSettings
    """How it is taken."""
    poison: bool
    """Whether outputs, scratch and guards are overwritten before each call; for kept calls."""
    keep_count: int
    """Timed calls, chosen at random, whose outputs go back into the shared buffers."""
    guests: Draw | None = None
    """Inputs of calls among the timed ones, whose outputs go into its last slots; its buffers'
    descriptors follow the first."""
    guest_seeds: tuple[int, ...] = ()
    """Which of its seeds, in which order."""
    number: int = 0
    """Of the configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeReply:
    """Raw samples, as the runner claims them."""

    samples_ns: tuple[float, ...]
    device_ns: tuple[float, ...]
    stop_reason: StopReason
    warmup_count: int
    discarded_count: int
    kept: tuple[KeptOutput, ...]
    host_ns: tuple[float, ...] = ()
    prepare_ns: tuple[float, ...] = ()
    """Time of `prepare` before each call, on the weights of that call; empty: it was not run."""
    guest_calls: int = 0
    """Calls on inputs of guests, in turn."""
    clocks: tuple[ClockBlock, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimesRequest:
    """Measure how a workload's time on its first input set divides among its steps."""

    workload: str
    kernels: tuple[str, ...]
    """Kernels that its plan launches."""
    flush_bytes: int
    """Read before each call to empty the caches."""
    number: int = 0
    """Of the configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimes:
    """Answer to `StepTimesRequest`."""

    own_ns: float
    """Time in the candidate's own kernels."""
    library_ns: float
    """Time in library calls."""
    kernel_times: tuple[KernelTime, ...]
    """In order of first use; empty when `launch` launches fewer than two kernels."""
    call_count: int
    """Calls that were made for it."""

    @property
    def own_share(self) -> float | None:
        """Share of time in the candidate's own kernels; None without library calls."""
        total_ns = self.own_ns + self.library_ns
        return self.own_ns / total_ns if self.library_ns and total_ns > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropRequest:
    """Forget a workload's pool and shared buffers."""

    workload: str
