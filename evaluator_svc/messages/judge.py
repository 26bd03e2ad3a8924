"""The supervisor's requests to a judge; most answers are in `draw`, `comparison` and the domain."""

from dataclasses import dataclass

from evaluator_svc.messages.comparison import RangeVerdict, RunComparison
from evaluator_svc.messages.locked import WorkloadNames
from evaluator_svc.messages.measurement import KeptOutput, MeasurementSettings
from kernel_foundry.domain.admission import Distribution, ValueRange
from kernel_foundry.domain.device import DeviceSpec, Peaks
from kernel_foundry.domain.evaluation import Baseline, Fact, PrecisionAudit
from kernel_foundry.domain.task import Task, Tolerance


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeConfigure:
    """First message to a judge."""

    device: DeviceSpec
    threads: int
    baselines: tuple[str, ...]
    """Baselines to time beside eager."""
    baseline_seconds: float
    """Longest measurement of one baseline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmitRequest:
    """Admit a task."""

    task: Task
    peaks: Peaks
    memory_bytes: int = 0
    """Device memory that it may use; 0: all of the device's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawRequest:
    """Draw inputs for one workload; the answer is a `Draw` with its descriptors."""

    task: Task
    workload: str
    tolerance: Tolerance
    seeds: tuple[int, ...]
    distributions: tuple[Distribution, ...] = ()
    """Distribution of each seed's inputs; empty: as the reference draws them."""
    mixed: tuple[Distribution, ...] = ()
    """Distributions of blocks of rows in the last seed's inputs, in place of its one
    distribution."""
    is_lean: bool = False
    """One shared buffer, which holds the last seed's inputs at first, and no copies beside it. Not
    where a seed does not decide the inputs: the draw says how it was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSeedRequest:
    """Put another seed's inputs into the buffer of a lean draw, and poison its outputs."""

    draw: int
    seed: int
    """Index of the seed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyRequest:
    """Compare output slots with the reference; the answer is a `RunComparison`.

    Of a lean draw: the one slot, which the run before has written; the verdict is on all runs so
    far.
    """

    draw: int
    slots: tuple[int, ...] = ()
    """Those that were written; empty: all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionRequest:
    """Hold the outputs of the first seed against the reference in float64."""

    draw: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FarElements:
    """Elements of an output that are far from the reference by their own size.

    Those alone where the reference is well conditioned.
    """

    share: float
    """Share of the examined elements."""
    zero_share: float
    """Share of the far elements that are exactly zero."""
    is_repeated: bool
    """Whether most of the far ones hold one and the same value."""
    element_count: int
    """Elements that were examined."""
    least: float
    """The relative error from which an element is far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionReply:
    """Answer to `PrecisionRequest`."""

    audit: PrecisionAudit | None = None
    """Audit of the least exact output that rounds to the task's narrowest format."""
    wide: PrecisionAudit | None = None
    """Audit of the least exact float32 output, in a task that rounds others to fewer bits."""
    columns: PrecisionAudit | None = None
    """Audit of columns that are small beside the others of their output; None without any."""
    lines: PrecisionAudit | None = None
    """Audit of lines in which the reference is far more exact than in the others of its output;
    None: there are none, or the candidate is clearly exact there. Only of outputs with float32's
    bits."""
    far: FarElements | None = None
    """Far elements of the output with most of them; None: there are hardly any, or it
    could not be found out."""
    note: str = ""
    """Why there is no audit, or which part of the outputs was audited."""
    is_by_element: bool = False
    """Whether no element of the outputs is made of many."""
    rounding_bias: float = 0.0
    """The largest of all 16-bit outputs: distance of results from those of eager PyTorch on
    average, away from zero, in units of the last place."""
    agreeing_bits: float = 0.0
    """Bits that agree with the float32 reference, where they say enough; 0: they do not."""

    @property
    def least_exact(self) -> PrecisionAudit | None:
        """The audit of the output that is nearest to falling short; None: there is no audit."""
        return self.audit or self.wide


@dataclass(frozen=True, slots=True, kw_only=True)
class PoisonRequest:
    """Poison every output slot again."""

    draw: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptClaim:
    """The numbers that decide which calls of a measurement are kept."""

    call_draws_seed: int
    """Seed of the random numbers that decide about calls (`evaluator_svc.messages.call_draws`)."""
    redraw_key: int
    """0: inputs were as drawn."""
    set_count: int
    keep_count: int
    warmup_count: int
    call_count: int
    """Timed calls, including those whose samples were discarded."""
    has_guests: bool
    """Whether some calls between them had inputs of unusual values."""
    redraws_parameters: bool = True
    """Whether parameters changed from call to call as inputs did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyKeptRequest:
    """Compare the outputs of calls that were kept; the answer is a `KeptVerdict`."""

    draw: int
    kept: tuple[KeptOutput, ...]
    claimed: KeptClaim | None = None
    """The numbers to verify timed calls with; None for other calls."""
    orders: tuple[tuple[int, ...], ...] = ()
    """Axes of each output, the one with the largest step in memory first; empty: as in its shape.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptVerdict:
    """Answer to `VerifyKeptRequest`."""

    verdict: RunComparison
    audited: PrecisionReply | None = None
    """Audit of the worst timed call; None if one is wrong, or for other calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRequest:
    """Change a few elements of some seeds' inputs in place, and poison their first slots."""

    draw: int
    with_parameters: bool
    is_second: bool = False
    """In a lean draw, after a first change: single elements change in place of the runs of that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeReply:
    """Answer to `ChangeRequest`."""

    seeds: tuple[int, ...]
    """Indices of the seeds whose inputs changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyChangedRequest:
    """Compare what a run on changed inputs wrote; the answer is a `RunComparison`."""

    draw: int
    seeds: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyRangesRequest:
    """Compare what a run on inputs of unusual values wrote into the first slots."""

    draw: int
    ranges: tuple[ValueRange, ...]
    """One for each seed of the draw."""
    guests: tuple[int, ...] = ()
    """Not that, but what calls among the timed ones wrote on inputs of these seeds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RangesReply:
    """Answer to `VerifyRangesRequest`."""

    verdicts: tuple[RangeVerdict, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselinesRequest:
    """Time baselines on a draw's inputs."""

    draw: int
    settings: MeasurementSettings
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskBaselinesRequest:
    """Time baselines on the inputs that an admission draws; the answer is `BaselinesReply`."""

    task: Task
    workload: str
    settings: MeasurementSettings
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselinesReply:
    """Answer to `BaselinesRequest` and `TaskBaselinesRequest`."""

    baselines: tuple[Baseline, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeRequest:
    """Tell what plans may name in a task; needs no device. The answer is `DescribeReply`."""

    task: Task
    shapes_alone: bool = False
    """Fail where shapes follow from values, and run nothing to learn them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeReply:
    """Answer to `DescribeRequest`."""

    workloads: tuple[WorkloadNames, ...]
    reference_op_count: int
    """Operators of the reference; 0 when its graph cannot be had."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyDecoyRequest:
    """Tell which outputs are right after a run without the candidate's kernels."""

    draw: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoyVerdict:
    """Answer to `VerifyDecoyRequest`."""

    right: tuple[str, ...]
    """Outputs whose first slots equal the reference within the tolerance, for every seed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeComparisonRequest:
    """Plant differences and count them, to see whether the comparison can be relied on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedCount:
    """One sort of difference in one format."""

    dtype: str
    what: str
    planted: int
    counted: int
    first_planted: int
    """Flat index; -1: none."""
    first_counted: int

    @property
    def is_right(self) -> bool:
        """True when all was found, and nothing else."""
        return (self.counted, self.first_counted) == (self.planted, self.first_planted)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonProbeReply:
    """Answer to `ProbeComparisonRequest`."""

    counts: tuple[PlantedCount, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRequest:
    """Forget a draw."""

    draw: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRequest:
    """Tell what a draw holds of the device's memory."""

    draw: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryHeld:
    """Answer to `MemoryRequest`."""

    shared_bytes: int
    """Bytes of the draw's buffers."""
    peak_bytes: int
    """Most that the judge's own tensors took while it worked on the draw, those of other draws
    included; 0 if torch does not count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeFacts:
    """Facts about the judge's process, for evidence."""

    process_id: int
    facts: tuple[Fact, ...]
