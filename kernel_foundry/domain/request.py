"""Requests to an evaluator and a generator, and a generator's answers."""

from dataclasses import dataclass

from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.archive import Selection
from kernel_foundry.domain.attestation import WorkloadSeeds
from kernel_foundry.domain.candidate import Candidate, KernelSource
from kernel_foundry.domain.evaluation import Evaluation, Setting
from kernel_foundry.domain.material import Material
from kernel_foundry.domain.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationLimits:
    """How long a candidate may take; what exceeds it ends as TIMEOUT."""

    build_seconds: float = 20.0
    run_seconds: float = 10.0
    """For one run of the launch sequence's correctness part on one workload."""
    timing_seconds: float = 1.0
    """Budget of the timed samples of one workload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Yardstick:
    """The time that fitness compares the times of one workload with."""

    workload: str
    time_ns: float
    """Median of the fastest baseline when the run began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationRequest:
    """One candidate to be judged."""

    task: Task
    device: str
    """Device id; a kind alone ("cuda") takes its least busy device; "" the first device that
    speaks the candidate's language. Of a fleet also a class (`domain.device_class`)."""
    source: KernelSource
    configuration: tuple[Setting, ...] = ()
    """TUNE values that differ from the defaults."""
    limits: EvaluationLimits = EvaluationLimits()
    fresh_baselines: bool = False
    """Time the baselines again, in blocks that alternate with the candidate's (promotion)."""
    stop_above_ns: tuple[float, ...] = ()
    """Incumbent medians of the timed workloads; a clearly slower candidate stops early."""
    request_id: str = ""
    """Idempotency key of a retried call; empty: none."""
    use_tools: bool = False
    """Let the vendor's tools look at a candidate that crashes or disagrees with itself; takes
    seconds, and nothing where there are none."""
    build_only: bool = False
    """Stop before the first launch: outcome BUILT, with resources and measures."""
    architecture: str = ""
    """Architecture to build for, such as "sm_90"; only with `build_only`, which needs no device.
    Empty: the device's own."""
    with_listings: bool = False
    """Give what the compiler made as text, too."""
    seeds: tuple[WorkloadSeeds, ...] = ()
    """Draw from these, to run a record again; workloads that are not named get secret ones."""
    yardsticks: tuple[Yardstick, ...] = ()
    """The run's yardsticks, so that all its candidates compare although baselines are measured
    again; workloads that are not named have their fastest baseline of now."""
    sanitize: bool = False
    """Run the vendor's sanitizers over the kernels; what they find refuses the candidate. Takes
    seconds; where there are none the check is skipped and says why."""
    with_objects: bool = False
    """Give the object code, too."""
    profile_seconds: float | None = None
    """Seconds that a profiler may take for a candidate that passes and takes at most a tenth longer
    than `stop_above_ns`; 0: only what takes none. None: no profile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenUsage:
    """Cost of one exchange with a model."""

    model: str
    input_tokens: int
    output_tokens: int
    cost_usd: float
    latency_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetCaps:
    """Hard caps of a run; None: unlimited."""

    cost_usd: float | None = None
    tokens: int | None = None
    requests_per_minute: int | None = None
    """Requests to models in any 60 seconds; more wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalRequest:
    """One proposal to be made."""

    run: str
    task: Task
    admission: Admission
    selection: Selection
    models: tuple[str, ...]
    """LiteLLM names to choose from; "memory=openai/gpt-5" is asked by that expert alone."""
    seed: int
    caps: BudgetCaps = BudgetCaps()
    spent_usd: float = 0.0
    """The run's spending so far, over all models."""
    spent_tokens: int = 0
    without: tuple[str, ...] = ()
    """Mechanisms of `kernel_foundry.domain.mechanisms` that are switched off."""
    materials: tuple[Material, ...] = ()
    """Code to start from, for a proposal without a parent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A model's answer. `candidate` is None when the reply holds no whole candidate."""

    candidate: Candidate | None
    reply: str = ""
    """The model's text when nothing could be extracted from it."""
    failure: str = ""
    """Why there is no candidate."""
    usage: tuple[TokenUsage, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalOutcome:
    """The outcome of a proposal: the verdict that was added to the archive."""

    run: str
    selection: int
    """`Selection.sequence` that it answers."""
    candidate: Candidate
    evaluation: Evaluation
