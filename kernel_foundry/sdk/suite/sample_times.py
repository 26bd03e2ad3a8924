"""What repeated calls took, in the five figures that KernelBench keeps of them."""

import statistics
from dataclasses import dataclass
from typing import Self

from kernel_foundry.domain.evaluation import Timing


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleTimes:
    """The samples of one measurement."""

    mean_ns: float
    stdev_ns: float
    """0 of a single sample."""
    least_ns: float
    most_ns: float
    count: int

    @classmethod
    def of(cls, timing: Timing) -> Self:
        """Return those of a timing."""
        samples = timing.samples_ns
        return cls(
            mean_ns=statistics.fmean(samples),
            stdev_ns=statistics.stdev(samples) if len(samples) > 1 else 0.0,
            least_ns=min(samples),
            most_ns=max(samples),
            count=len(samples),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineTimes:
    """A baseline on a task's first timed workload, as the admission measured it."""

    name: str
    times: SampleTimes
