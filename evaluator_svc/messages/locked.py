"""The messages between supervisor, builder and runner, and those that every process knows."""

from dataclasses import dataclass
from typing import Final, Self

from evaluator_svc.messages.draw import Draw
from evaluator_svc.messages.item_order import ItemOrder
from evaluator_svc.messages.measurement import KeptOutput, MeasurementSettings
from evaluator_svc.sandbox.confinement import Confinement
from kernel_foundry import errors
from kernel_foundry.domain.admission import NamedScalar, NamedTensor
from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.device import DeviceSpec, IsolationReport
from kernel_foundry.domain.evaluation import (
    ClockBlock,
    EvaluationOutcome,
    Setting,
    StopReason,
)
from kernel_foundry.domain.finding import Finding
from kernel_foundry.domain.kernel_time import KernelTime
from kernel_foundry.domain.sweep import Configuration

LOG_CHARACTERS: Final = 64 << 10
"""What is kept of a compiler's log, from its end."""

# To every process.


@dataclass(frozen=True, slots=True, kw_only=True)
class Configure:
    """First message to a builder, inspector or runner: lock yourself in and open what you need."""

    kind: str
    """Device kind: "cuda", "sycl" or "null"."""
    index: int
    architecture: str
    """What a builder builds for, such as "sm_90"; "" is the device's own."""
    confinement: Confinement
    outer: tuple[str, ...]
    """Mechanisms that were in force before the process began ("bubblewrap")."""
    unsafe_no_sandbox: bool
    """Whether to go on when nothing locks the process in."""
    node: str = ""
    """The device's own node, when known: no other GPU is to be opened then."""
    counts_devices: bool = False
    """Whether to see the kind's other devices as well, and say how many there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """Answer to `Configure`."""

    process_id: int
    isolation: IsolationReport
    device: DeviceSpec | None
    """None when the device kind cannot be used here, and in builders that open none."""
    device_count: int = 0
    """Devices of the kind that the process sees; 0 in builders that open none."""
    node: str = ""
    """The device's own node, such as "/dev/nvidia3"; "" if it has none of that sort."""
    compiler_version: str = ""
    unavailable: str = ""
    """Why there is no device, in the loader's or driver's own words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateFailure:
    """The candidate is at fault: an outcome, with its findings."""

    outcome: EvaluationOutcome
    findings: tuple[Finding, ...]
    is_runner_usable: bool = False
    """Whether the runner that says so goes on, as with another configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """One dynamic value of an error's message."""

    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFailure:
    """One of our own errors, on its way to be raised again in the supervisor."""

    reason: str
    """`KernelFoundryError.reason`; empty for a bug."""
    message: str
    details: tuple[Detail, ...] = ()

    @classmethod
    def of(cls, error: errors.KernelFoundryError) -> Self:
        """Return the message that carries `error`."""
        details = tuple(Detail(name=k, value=v) for k, v in error.metadata.items())
        return cls(reason=error.reason, message=error.message, details=details)

    def error(self) -> errors.KernelFoundryError:
        """Return the error as it was raised."""
        kinds = {k.reason: k for k in errors.KernelFoundryError.__subclasses__()}
        kind = kinds.get(self.reason, errors.KernelFoundryError)
        return kind(self.message, **{d.name: d.value for d in self.details})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReorderReply:
    """Answer to a `RunRequest` in reverse order."""

    reverses_groups: bool
    """False: the object code reads its numbers in a way of its own, and nothing was run."""
    items: ItemOrder
    """What became of the work-items of a group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WithoutKernels:
    """Answer to a `RunRequest` without kernels."""

    choice_count: int
    """How many choices of copies there are, at least 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoneReply:
    """It is done; there is no result."""


# Names and texts.


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadNames:
    """What a plan may name in one workload."""

    workload: str
    tensors: tuple[NamedTensor, ...]
    scalars: tuple[NamedScalar, ...]
    is_optional: bool = False
    """A plan, or a compiler, that refuses it leaves it out, and the others go on."""
    is_spare: bool = False
    """An optional one that is of use only where no other optional one is taken."""


# Supervisor to builder, and back.


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadCandidateRequest:
    """Parse and check a candidate."""

    source: KernelSource
    configuration: tuple[Setting, ...]
    device: DeviceSpec
    workloads: tuple[WorkloadNames, ...]
    """Optional ones last, and spare ones behind the other optional ones."""
    library_ops: tuple[str, ...] = ()
    """Library calls that the task allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslationUnit:
    """One source to be built: the device code with its macros."""

    source: str
    options: tuple[str, ...]
    kernels: tuple[str, ...]
    """Names of its kernels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadCandidateReply:
    """A candidate that can be built."""

    configuration: tuple[Setting, ...]
    """A value for every TUNE name."""
    units: tuple[TranslationUnit, ...]
    unit_of_workload: tuple[int, ...]
    """For each requested workload, in order, the index of its unit."""
    parse_ms: float
    policy_ms: float
    uses_library: bool = False
    """Whether the plan makes library calls: its runner needs torch."""
    findings: tuple[Finding, ...] = ()
    """What the policy's rules found in source and plan; none refuses."""
    left_out: tuple[str, ...] = ()
    """Optional workloads, by name, that the plan refuses, that are of no use or too many to build
    for; the first unit is said to be theirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileRequest:
    """Build a unit of the candidate read last; the builder still has its source."""

    unit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileReply:
    """A built unit.

    Object code and assembly (PTX; empty for SPIR-V) are the message's blobs, absent when the build
    failed.
    """

    succeeded: bool
    log: str
    build_ns: float
    findings: tuple[Finding, ...] = ()
    """What the log says of the candidate, when the build failed."""
    is_meant: bool = True
    """False: a `static_assert` failed, so this configuration was not meant to be built."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnumerateRequest:
    """Say which configurations a candidate has."""

    source: KernelSource
    device: DeviceSpec
    workloads: tuple[WorkloadNames, ...]
    order: tuple[Configuration, ...]
    """Those to name first, behind the default."""
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EnumerateReply:
    """Answer to `EnumerateRequest`: what to try, in order, a value for every TUNE name each."""

    configurations: tuple[Configuration, ...]
    uses_library: bool = False
    """Whether the plan makes library calls: its runner needs torch."""


# Supervisor to runner, and back.


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
    """What a plan became for one workload."""

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
    """What a change of layout reads and writes: twice the smaller of the weights that `prepare`
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
    """Of each kernel that it launches."""


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
    """What `prepare` took before each call, on the weights of that call; empty: it was not run."""
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
