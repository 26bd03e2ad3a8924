"""Evaluations: the verdict on a candidate, with its evidence.

A failing candidate is data here, never an exception. Times are float nanoseconds.
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kernel_foundry.domain.attestation import Attestation
from kernel_foundry.domain.check import Check, Trust
from kernel_foundry.domain.finding import Finding
from kernel_foundry.domain.kernel_time import KernelTime
from kernel_foundry.domain.launch_facts import LaunchFacts
from kernel_foundry.domain.measures import Measures
from kernel_foundry.domain.profile import Profile
from kernel_foundry.domain.speedup import (
    TimeBounds,
    TimePair,
    fastest,
    mean_speedup,
    mean_speedup_interval,
)

LEAST_ERROR: Final = 2.0**-53
"""Stands for an error of 0 where a logarithm is asked for: float64 tells no more."""


class EvaluationOutcome(StrEnum):
    """PASSED, or the stage and way in which a candidate failed."""

    PASSED = "passed"
    REJECTED = "rejected"
    EXTRACTION_FAILED = "extraction_failed"
    PLAN_ERROR = "plan_error"
    COMPILE_ERROR = "compile_error"
    LAUNCH_ERROR = "launch_error"
    CRASHED = "crashed"
    TIMEOUT = "timeout"
    WRONG_RESULT = "wrong_result"
    NONDETERMINISTIC = "nondeterministic"
    BUILT = "built"
    """Compiled and bound as asked, and never run."""


class StopReason(StrEnum):
    """Why a measurement ended."""

    CONVERGED = "converged"
    MAX_SAMPLES = "max_samples"
    BUDGET = "budget"
    SLOWER_THAN_INCUMBENT = "slower_than_incumbent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One TUNE name and the value chosen for it, written as in a plan ("128", "True")."""

    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelResources:
    """The resources of one built kernel, according to its object code."""

    kernel: str
    registers: int
    """32-bit registers of a work-item."""
    shared_bytes: int
    """Static shared memory of a work-group."""
    local_bytes: int
    """Stack of a work-item in device memory; spilled registers are part of it."""
    spill_bytes: int
    """Registers stored to and loaded from the stack, as the assembler counts them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """One form of a source's compiled code, as text for people."""

    form: str
    """"ptx" or "sass"."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectCode:
    """The object code of one source."""

    workloads: tuple[str, ...]
    """Names of the workloads that it is for."""
    code: str
    """SPIR-V or a cubin, in base64."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileReport:
    """The compiler's log and results; present once a build was tried."""

    log: str
    """Diagnostics, at most 64 KiB."""
    compile_ns: float
    """Time of the build; 0 when the object came from the cache."""
    cached: bool
    object_bytes: int
    """Size of the object code; 0 when the build failed."""
    kernels: tuple[KernelResources, ...] = ()
    """Empty where object code does not tell (SPIR-V)."""
    listings: tuple[Listing, ...] = ()
    """The PTX of each source, and its machine code if a disassembler is found; on demand."""
    objects: tuple[ObjectCode, ...] = ()
    """The object code of each source; on demand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionAudit:
    """Errors against the reference in float64: the candidate's, the reference's, eager PyTorch's.

    An error is |value - exact| / (scale of its row + |exact|), dimensionless, as the tolerance
    counts it; the worst output counts.
    """

    median_error: float
    p99_error: float
    max_error: float
    rms_error: float
    """Root mean square of the candidate's errors."""
    reference_rms_error: float
    """The same of the reference in the task's own precision."""
    effective_bits: float
    """-log2 of the candidate's `rms_error`: 24 is float32, 11 float16 or TF32, 8 bfloat16."""
    element_count: int
    eager_rms_error: float | None = None
    """The same of eager PyTorch as it is timed, TF32 and 16 bits included; None: not measured."""

    @property
    def eager_bits(self) -> float | None:
        """Effective bits of eager PyTorch; None where they were not measured."""
        return None if self.eager_rms_error is None else effective_bits(self.eager_rms_error)


def effective_bits(rms_error: float) -> float:
    """Bits of mantissa that errors of this size leave; at most 53."""
    return -math.log2(max(rms_error, LEAST_ERROR))


@dataclass(frozen=True, slots=True, kw_only=True)
class Correctness:
    """Comparison with the reference over all seeds of one workload; the worst counts."""

    max_abs_error: float
    """NaN when the candidate wrote NaN."""
    max_rel_error: float
    mismatch_count: int
    element_count: int
    """Elements compared, all seeds and outputs."""
    first_mismatch: int | None
    """Flat index in the output, or None."""
    seed_count: int
    run_count: int
    """Runs that had to agree for each seed."""
    bitwise_reproducible: bool
    precision: PrecisionAudit | None = None
    """None for whole numbers, and where it could not be made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockBlock:
    """The device's clocks around one uninterrupted block of samples."""

    sample_count: int
    compute_mhz_before: int
    compute_mhz_after: int
    memory_mhz: int
    throttle_reasons: tuple[str, ...] = ()
    """Why the device ran slower than it could, in the driver's terms; empty: it did not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Raw samples of one measurement and what follows from them."""

    samples_ns: tuple[float, ...]
    """From the first submit to completion, steady clock (CPU) or device events (GPU)."""
    device_ns: tuple[float, ...] = ()
    """Event spans beside it, where the samples are the steady clock's."""
    host_ns: tuple[float, ...] = ()
    """The steady clock beside it, where the samples are device events."""
    median_ns: float
    ci95_ns: tuple[float, float]
    """95 % confidence interval of the median, (lower, upper)."""
    stop_reason: StopReason
    is_cold: bool
    """True when caches were flushed before each sample."""
    warmup_count: int
    discarded_count: int
    """Samples dropped because the device throttled."""
    clocks: tuple[ClockBlock, ...] = ()
    """One for each block of samples; empty where the device's clocks cannot be read."""

    @property
    def bounds_ns(self) -> TimeBounds:
        """The median between the bounds of its 95 % interval."""
        return self.ci95_ns[0], self.median_ns, self.ci95_ns[1]

    @property
    def seen_ns(self) -> tuple[float, float]:
        """Between which times the median was seen: of one or two samples the extremes.

        Their interval agrees with nearly anything, so it tells no change.
        """
        if len(self.samples_ns) > 2:
            return self.ci95_ns
        return min(self.samples_ns), max(self.samples_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """A PyTorch way to run the same workload, timed by the same loop."""

    name: str
    """"eager", "torch.compile", "torch.compile_max_autotune" or "cuda_graph"."""
    timing: Timing
    """The fastest of its measurements."""
    round_count: int = 1
    """Measurements made: at an admission until two of them agree."""
    scatter: float = 0.0
    """How much slower than the fastest the slowest of them was, relative."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadResult:
    """The results on one workload. `timing` is None for held-out and failed ones."""

    workload: str
    held_out: bool = False
    correctness: Correctness | None = None
    timing: Timing | None = None
    warm_timing: Timing | None = None
    baselines: tuple[Baseline, ...] = ()
    traffic_bound_ns: float | None = None
    """See `WorkloadAdmission`; None when unknown. The next one likewise."""
    arithmetic_estimate_ns: float | None = None
    own_share: float | None = None
    """Share of device time in the candidate's own kernels; None without library calls."""
    prepare_ns: float | None = None
    """Time of `prepare` for one set of weights: the median of those that it took before each timed
    call, on the weights of that call; None when the plan has none."""
    prepare_limit_ns: float | None = None
    """Longest time of `prepare` that counts as layout (`pipeline/timing/prepare_limit.py` of the
    evaluator); beyond it every call is charged with it."""
    kernel_times: tuple[KernelTime, ...] = ()
    """In order of first use; empty for a plan that launches fewer than two kernels."""
    yardstick_ns: float | None = None
    """The time that fitness compares `timing` with: the fastest baseline when the run began, though
    `baselines` may have been measured again since. None when not timed."""
    yardstick_given: bool = False
    """True where `yardstick_ns` is a figure of whoever asked for the verdict, and not what this
    evaluator measured: fitness is as good as their word."""
    weight: float = 1.0
    """How much its speed-up counts in that of the task, beside the weights of the others."""

    @property
    def speedup(self) -> float | None:
        """Fastest baseline over candidate, medians; None when not timed."""
        return speedup_of((self,))

    @property
    def speedup_eager(self) -> float | None:
        """Eager over candidate, medians; None when not timed."""
        return speedup_of((self,), "eager")

    @property
    def speedup_interval(self) -> tuple[float, float] | None:
        """95 % interval (lower, upper) of `speedup`; None when not timed."""
        return speedup_interval_of((self,))

    @property
    def precision(self) -> PrecisionAudit | None:
        """The audit of its outputs; None where there is none."""
        return None if self.correctness is None else self.correctness.precision

    @property
    def charged_prepare_ns(self) -> float:
        """Time of `prepare` that every call is charged with: 0 as long as it is layout."""
        if self.prepare_ns is None or self.prepare_limit_ns is None:
            return 0.0
        return self.prepare_ns if self.prepare_ns > self.prepare_limit_ns else 0.0

    @property
    def call_bounds_ns(self) -> TimeBounds | None:
        """Median of one call between the bounds of its 95 % interval.

        What a speed-up, fitness, the winner and an early stop go by: `timing`, and `prepare` where
        it is charged.
        """
        if self.timing is None:
            return None
        lower, median, upper = self.timing.bounds_ns
        charged = self.charged_prepare_ns
        return lower + charged, median + charged, upper + charged

    @property
    def speedup_prepared_once(self) -> float | None:
        """Fastest baseline over candidate with `prepare` done for a single call."""
        if self.prepare_ns is None or self.timing is None or not self.baselines:
            return self.speedup
        fastest = min(b.timing.median_ns for b in self.baselines)
        return fastest / (self.timing.median_ns + self.prepare_ns)

    @property
    def traffic_bound_share(self) -> float | None:
        """Traffic bound over the median of a call, dimensionless."""
        return self._share(self.traffic_bound_ns)

    @property
    def arithmetic_estimate_share(self) -> float | None:
        """Arithmetic estimate over the median of a call; above 1 the estimate was beaten."""
        return self._share(self.arithmetic_estimate_ns)

    def _share(self, limit_ns: float | None) -> float | None:
        bounds = self.call_bounds_ns
        return None if bounds is None or limit_ns is None else limit_ns / bounds[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTime:
    """Wall time of one stage of an evaluation."""

    stage: str
    """Name of the stage, such as "build" or "timing". docs/evaluation.md lists the stages."""
    wall_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One line of evidence for people: what was used and how (never parsed)."""

    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The verdict on one candidate in one configuration on one device."""

    candidate: str
    """Digest of the candidate's source; of the raw reply when nothing could be extracted."""
    task: str
    """Digest of the task."""
    device: str
    """Id of the device."""
    outcome: EvaluationOutcome
    configuration: tuple[Setting, ...] = ()
    compile: CompileReport | None = None
    workloads: tuple[WorkloadResult, ...] = ()
    measures: Measures | None = None
    """None until the source could be read."""
    fitness: float = 0.0
    """From 0, see `kernel_foundry.domain.fitness`: what it is worth for certain."""
    optimistic_fitness: float = 0.0
    """The same at the lower bound of the time: what it may be worth."""
    findings: tuple[Finding, ...] = ()
    stages: tuple[StageTime, ...] = ()
    evidence: tuple[Fact, ...] = ()
    swept_count: int = 0
    """Configurations that a sweep tried to find this one; 0: none did."""
    is_final: bool = False
    """Added at the end of a run, which takes its winner from such verdicts alone."""
    checks: tuple[Check, ...] = ()
    """Facts that the verdict rests on, in the order in which they were found."""
    trust: Trust = Trust.FULL
    attestation: Attestation | None = None
    """None for a candidate that did not pass."""
    arithmetic: str = ""
    """How it computes, as object code and measured bits show: "float32 by three bfloat16
    products"; empty where they do not show it."""
    profile: Profile | None = None
    """Profile on the workload whose call takes longest; None if none was asked for, or it
    failed."""
    launches: LaunchFacts | None = None
    """Launches on the first workload; None until the plan was bound."""

    def __post_init__(self) -> None:
        if self.outcome is EvaluationOutcome.PASSED:
            is_ours = self.trust is not Trust.FOREIGN
            if is_ours and (self.compile is None or self.measures is None):
                raise ValueError("a PASSED evaluation has a compile report and measures")
            timed = [w for w in self.workloads if not w.held_out]
            if not timed or any(w.timing is None for w in timed):
                raise ValueError("a PASSED evaluation has a timing for every timed workload")
        elif any(w.timing is not None for w in self.workloads) and (
            self.outcome not in (EvaluationOutcome.REJECTED, EvaluationOutcome.WRONG_RESULT)
        ):
            raise ValueError(f"a {self.outcome.name} evaluation has no timing")

    @property
    def passed(self) -> bool:
        """True when the candidate is correct and timed."""
        return self.outcome is EvaluationOutcome.PASSED

    @property
    def least_exact(self) -> WorkloadResult | None:
        """The workload with the fewest effective bits; None where none was audited."""
        audited = [(w.precision.effective_bits, w) for w in self.workloads if w.precision]
        return min(audited, key=lambda pair: pair[0], default=(0.0, None))[1]

    @property
    def precision(self) -> PrecisionAudit | None:
        """The audit of the least exact workload; None where none was audited."""
        return None if self.least_exact is None else self.least_exact.precision

    @property
    def speedup(self) -> float | None:
        """Weighted geometric mean over timed workloads of the fastest baseline over a call."""
        return speedup_of(self.workloads)

    @property
    def speedup_eager(self) -> float | None:
        """Weighted geometric mean over timed workloads of eager over the candidate."""
        return speedup_of(self.workloads, "eager")

    @property
    def speedup_interval(self) -> tuple[float, float] | None:
        """95 % interval (lower, upper) of `speedup`, see `kernel_foundry.domain.speedup`."""
        return speedup_interval_of(self.workloads)

    @property
    def speedup_eager_interval(self) -> tuple[float, float] | None:
        """95 % interval (lower, upper) of `speedup_eager`."""
        return speedup_interval_of(self.workloads, "eager")


def speedup_of(results: tuple[WorkloadResult, ...], baseline: str = "") -> float | None:
    """Return the weighted geometric mean over timed workloads of a baseline over the candidate.

    Of the fastest baseline, or of the one that is named; None where a workload has none.
    """
    pairs = _pairs(results, baseline)
    return mean_speedup(pairs, _weights(results)) if pairs else None


def speedup_interval_of(
    results: tuple[WorkloadResult, ...], baseline: str = ""
) -> tuple[float, float] | None:
    """Return the 95 % interval (lower, upper) of `speedup_of`, None where that is None."""
    pairs = _pairs(results, baseline)
    return mean_speedup_interval(pairs, _weights(results)) if pairs else None


def _weights(results: tuple[WorkloadResult, ...]) -> tuple[float, ...]:
    return tuple(result.weight for result in results if not result.held_out)


def _pairs(results: tuple[WorkloadResult, ...], baseline: str) -> list[TimePair]:
    """Baseline and candidate of each timed workload; empty where one is missing."""
    pairs = []
    for result in results:
        times = [b.timing.bounds_ns for b in result.baselines if baseline in ("", b.name)]
        bounds = result.call_bounds_ns
        if not result.held_out and (bounds is None or not times):
            return []
        if not result.held_out and bounds is not None:
            pairs.append((fastest(times), bounds))
    return pairs
