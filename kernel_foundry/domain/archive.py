"""Runs, elites and selections: what the archive remembers and hands out."""

from dataclasses import dataclass
from enum import IntEnum, StrEnum

from kernel_foundry.domain.candidate import Candidate, Operator
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.measures import Measures
from kernel_foundry.domain.task import Task


class AddStatus(IntEnum):
    """What became of a told candidate, in rising order."""

    NOT_ADDED = 0
    IMPROVE_EXISTING = 1
    NEW = 2


class RunState(StrEnum):
    """Where a run stands."""

    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """What a run was asked to do; fixed when it is created."""

    name: str
    """Unique in the store, [A-Za-z0-9._-]+."""
    task: Task
    language: Language
    device: str
    models: tuple[str, ...]
    strategy: str
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run as the store has it."""

    spec: RunSpec
    state: RunState
    created_unix_s: float
    told_count: int
    best_speedup: float | None
    """Of the best elite; None before anything passed."""
    cost_usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Elite:
    """The best candidate of a cell."""

    candidate: Candidate
    evaluation: Evaluation
    fitness: float
    measures: Measures


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The assignment of the next proposal."""

    operator: Operator
    parent: Elite | None = None
    """None for a seed; for a repair its evaluation is a failed one."""
    inspirations: tuple[Elite, ...] = ()
    target: Measures | None = None
    """Cell to aim at; None: no direction."""
    hint: str = ""
    """The direction in words."""
    sequence: int = 0
    """Counts selections of the run from 0; decides nothing but makes each one distinct."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldEvaluation:
    """A candidate and its verdict as told, in order."""

    sequence: int
    """1-based position among the run's told evaluations."""
    candidate: Candidate
    evaluation: Evaluation
    told_unix_s: float
    cost_usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AddResult:
    """What a tell did."""

    status: AddStatus
    improvement: float
    """Fitness gained in the cell, 0 when not added."""
    cell: tuple[int, int, int] | None
    """None for a candidate that did not pass."""
    is_best: bool
    """True when it is the run's best elite now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeCount:
    """How many told evaluations ended one way."""

    outcome: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveStats:
    """The archive in the field's terms."""

    told_count: int
    elite_count: int
    coverage: float
    """Share of cells with an elite, in [0, 1]."""
    qd_score: float
    """Sum of the elites' fitness."""
    objective_max: float | None
    objective_mean: float | None
    outcomes: tuple[OutcomeCount, ...]
