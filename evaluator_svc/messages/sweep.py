"""What the processes say to each other in a sweep, beside `messages`.

Builders enumerate once and then prepare and compile one configuration after the other; a runner is
opened once and then tries them all.
"""

from dataclasses import dataclass

from evaluator_svc.messages.exchange import Draw, MeasurePlan
from evaluator_svc.messages.locked import CandidateSource, TimeReply, WorkloadNames
from kernel_foundry.domain.device import DeviceSpec
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import Finding
from kernel_foundry.domain.sweep import Configuration

# Supervisor to builder, and back.


@dataclass(frozen=True, slots=True, kw_only=True)
class EnumerateRequest:
    """Say which configurations a candidate has."""

    text: str
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
class SweepOpen:
    """Map the draws of every workload; their descriptors travel beside it, in order."""

    device: DeviceSpec
    workloads: tuple[WorkloadNames, ...]
    draws: tuple[Draw, ...]
    """One for each workload, in order, of one seed each."""
    timed: tuple[str, ...]
    """Workloads whose times are taken."""
    pool_wanted_bytes: int
    pool_limit_bytes: int
    library_ops: tuple[str, ...] = ()
    """Library calls that the task allows."""
    tf32: bool = False
    """Whether they may use TF32 on a GPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TryRequest:
    """Load one configuration (its units' objects are the blobs), run it everywhere, time it.

    The outputs of the checked run and of two timed calls lie in the output slots afterwards.
    """

    number: int
    """Names the configuration in later requests."""
    source: CandidateSource
    kernels: tuple[tuple[str, ...], ...]
    unit_of_workload: tuple[int, ...]
    plan: MeasurePlan
    stop_above_ns: tuple[float, ...]
    """The incumbent's upper bound on each timed workload; empty: there is no incumbent."""
    forget: tuple[int, ...] = ()
    """Configurations that are not asked about again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TryReply:
    """Answer to `TryRequest`."""

    load_ms: float
    run_ms: float
    """The checked runs."""
    time_ms: float
    timed: tuple[TimeReply, ...]
    """One for each timed workload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationFailure:
    """The configuration is at fault."""

    outcome: EvaluationOutcome
    findings: tuple[Finding, ...]
    is_not_meant: bool = False
    is_usable: bool = True
    """Whether the process can go on with another configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeAgainRequest:
    """Take another block of samples of a configuration that was tried."""

    number: int
    plan: MeasurePlan


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeAgainReply:
    """Answer to `TimeAgainRequest`."""

    timed: tuple[TimeReply, ...]
    """One for each timed workload."""
    time_ms: float
