"""Landscapes: every variant of a kernel family with what the hardware said of it."""

from dataclasses import dataclass

from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.launch_facts import LaunchFacts
from kernel_foundry.domain.measures import Measures

ParameterValue = int | float | bool | str

ValueKey = tuple[bool, ParameterValue]
"""A value by which variants are distinguished."""


def value_key(value: ParameterValue) -> ValueKey:
    """Return what equal values share: `true` is not 1, but 1.0 is."""
    return isinstance(value, bool), value


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One choice of the family."""

    name: str
    values: tuple[ParameterValue, ...]
    """All values, in a meaningful order where there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One member of the family and its verdict."""

    values: tuple[ParameterValue, ...]
    """In the order of the landscape's parameters."""
    measures: Measures | None
    """None where they are not known."""
    outcome: EvaluationOutcome
    launches: LaunchFacts | None = None
    """None where they are not known."""
    times_ns: tuple[float, ...] = ()
    """Raw cold samples; at least one when it passed."""

    @property
    def passed(self) -> bool:
        """True when it is correct and timed."""
        return self.outcome is EvaluationOutcome.PASSED


@dataclass(frozen=True, slots=True, kw_only=True)
class Landscape:
    """A recorded family of variants; not every combination of values needs to be there."""

    name: str
    parameters: tuple[Parameter, ...]
    variants: tuple[Variant, ...]
    """At least one of them passed; no two have the same values."""
    task: str = ""
    language: str = ""
    device: str = ""
    driver: str = ""
    date: str = ""
    """Of the recording, as ISO 8601."""
    commit: str = ""
    """Of the program that recorded it."""
    baseline_ns: float | None = None
    """Time of the fastest baseline; None: the median correct variant is the yardstick."""
