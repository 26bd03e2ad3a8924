"""Sweeps: every configuration of one candidate, tried, verified and raced.

A configuration that fails is data here, like a candidate that fails. Times of people's interest
are in milliseconds, samples in nanoseconds.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

from kernel_foundry.domain.candidate import KernelSource
from kernel_foundry.domain.evaluation import (
    EvaluationOutcome,
    KernelResources,
    Setting,
    Timing,
)
from kernel_foundry.domain.finding import Finding
from kernel_foundry.domain.request import EvaluationLimits
from kernel_foundry.domain.speedup import weighted_mean
from kernel_foundry.domain.task import Task


class Validity(StrEnum):
    """How a configuration ended, in the terms of the T4 results format."""

    CORRECT = "correct"
    COMPILE = "compile"
    """It did not build, or nothing could be read from the text."""
    RUNTIME = "runtime"
    """A launch was refused, or the process died."""
    CORRECTNESS = "correctness"
    CONSTRAINTS = "constraints"
    """Not meant: `require`, a condition on shapes, or a `static_assert` says no."""
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """A value for each TUNE name it lists; the others keep their defaults."""

    settings: tuple[Setting, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRequest:
    """One candidate whose configurations are to be tried."""

    task: Task
    device: str
    """As in `EvaluationRequest`."""
    source: KernelSource
    limits: EvaluationLimits = EvaluationLimits()  # noqa: RUF009  frozen, a plain value
    """Deadlines of each configuration; `timing_seconds` bounds all its blocks of samples."""
    order: tuple[Configuration, ...] = ()
    """Configurations to try first, after the default; those that the candidate lacks are
    skipped."""
    max_configurations: int = 1024
    """Most configurations to try; of a larger space an even choice is taken."""
    seconds: float = 600.0
    """Wall-clock budget; configurations that are not reached are not reported."""
    request_id: str = ""
    """Idempotency key of a retried call; empty: none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationTimes:
    """Where the time of one configuration went."""

    compile_ms: float = 0.0
    """Time of the build; 0 if its object came from the cache."""
    load_ms: float = 0.0
    """Loading the object code and binding the plan."""
    verification_ms: float = 0.0
    """The checked run and the comparison."""
    benchmark_ms: float = 0.0
    """All timed blocks, warm-up and emptied caches included."""
    framework_ms: float = 0.0
    """The rest between the configuration's turn and its result: messages, checks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationTiming:
    """Cold samples of one configuration on one workload."""

    workload: str
    timing: Timing
    weight: float = 1.0
    """How much the workload counts in the means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationResult:
    """The result of one configuration."""

    configuration: tuple[Setting, ...]
    """A value for every TUNE name; empty when the text could not be read or has none."""
    validity: Validity
    outcome: EvaluationOutcome
    """PASSED when it is right and timed."""
    times: ConfigurationTimes
    timings: tuple[ConfigurationTiming, ...] = ()
    """One for each timed workload; empty unless it is right."""
    speedup: float | None = None
    """Weighted geometric mean over timed workloads of the admission's fastest baseline over the
    median."""
    raced_out: bool = False
    """Its times were ended early: even its lower bound was above the best one's upper bound."""
    findings: tuple[Finding, ...] = ()
    resources: tuple[KernelResources, ...] = ()
    cached: bool = False
    """True when every object came from the cache."""
    finished_unix_s: float
    total: int
    """Configurations of this sweep, this one included."""
    speedup_interval: tuple[float, float] | None = None
    """95 % interval (lower, upper) of `speedup`."""

    @property
    def is_correct(self) -> bool:
        """True when it was verified and timed."""
        return self.validity is Validity.CORRECT

    @property
    def median_ns(self) -> float | None:
        """Weighted geometric mean over timed workloads of the medians; None when not timed."""
        return self._mean([t.timing.median_ns for t in self.timings])

    @property
    def bounds_ns(self) -> tuple[float, float] | None:
        """The same of the lower and of the upper bounds."""
        lower = self._mean([t.timing.ci95_ns[0] for t in self.timings])
        upper = self._mean([t.timing.ci95_ns[1] for t in self.timings])
        return None if lower is None or upper is None else (lower, upper)

    @property
    def least_seen_ns(self) -> float | None:
        """The same of the least that medians were seen at, as `Timing.seen_ns`."""
        return self._mean([t.timing.seen_ns[0] for t in self.timings])

    def _mean(self, values_ns: list[float]) -> float | None:
        weights = [t.weight for t in self.timings]
        # A clock may say 0, which has no logarithm.
        return weighted_mean([max(v, 1e-9) for v in values_ns], weights) if values_ns else None


def best_of(results: tuple[ConfigurationResult, ...]) -> ConfigurationResult | None:
    """Return the correct result with the lowest median among those not raced out, or None."""
    timed = [r for r in results if r.is_correct and not r.raced_out and r.median_ns is not None]
    return min(timed, key=lambda r: r.median_ns or math.inf, default=None)
