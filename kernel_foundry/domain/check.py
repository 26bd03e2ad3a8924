"""Checks: what a verdict rests on, each with the figures that it was decided by."""

from dataclasses import dataclass
from enum import StrEnum

from kernel_foundry.domain.finding import Figure


class CheckKind(StrEnum):
    """What was looked at."""

    SOURCE_POLICY = "source_policy"
    PLAN_POLICY = "plan_policy"
    OBJECT_POLICY = "object_policy"
    COMPARISON = "comparison"
    DETERMINISM = "determinism"
    INPUTS_INTACT = "inputs_intact"
    GUARDS_INTACT = "guards_intact"
    OWN_KERNELS = "own_kernels"
    VALUE_RANGE = "value_range"
    PRECISION = "precision"
    ELEMENTS = "elements"
    TIMED_OUTPUTS = "timed_outputs"
    DATA_FLOW = "data_flow"
    CLOCK = "clock"
    PHYSICAL_FLOOR = "physical_floor"
    SECOND_MEASUREMENT = "second_measurement"
    ARITHMETIC = "arithmetic"
    SCHEDULE = "schedule"
    SANITIZER = "sanitizer"
    OUTPUT_MEMORY = "output_memory"
    PROCESS_STATE = "process_state"
    FOREIGN_CODE = "foreign_code"
    TASK_CHECK = "task_check"


class CheckResult(StrEnum):
    """How it came out."""

    PASSED = "passed"
    SUSPECT = "suspect"
    """Nothing forbidden, and still a reason to measure twice."""
    FAILED = "failed"
    SKIPPED = "skipped"
    """It could not be made here; the note says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check of one candidate."""

    kind: CheckKind
    result: CheckResult
    workload: str = ""
    """Empty when it is about no workload in particular."""
    figures: tuple[Figure, ...] = ()
    """What it was decided by; units are in the names."""
    note: str = ""
    """One sentence for people; empty when the figures say it all."""


class Trust(StrEnum):
    """How far the verdict on a candidate that passed may be relied on."""

    FULL = "full"
    SUSPECT = "suspect"
    """Two evaluations in two processes passed and were suspicious, or a run's best could not be
    measured again."""
    DEGENERATE = "degenerate"
    """The task is degenerate: a trivial answer passes it, so that passing says little."""
    FOREIGN = "foreign"
    """A foreign kernel, which has a process to itself: its checks name what they cannot see."""
