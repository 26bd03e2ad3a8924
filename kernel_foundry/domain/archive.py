"""Runs, elites and selections: what the archive remembers and hands out.

What it has learnt, transitions and their gradient, is in `gradient.py`.
"""

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Final

from kernel_foundry.domain.candidate import Candidate, KernelSource, Operator
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.material import Material
from kernel_foundry.domain.measures import Cell, Measures
from kernel_foundry.domain.model_limit import ModelLimit
from kernel_foundry.domain.task import Task

STRATEGY_NAMES: Final = ("gradient", "fitness", "sliding", "curiosity", "uniform", "best_of_n")
"""Names of the selection strategies. An archive may know others, for ablations."""

DEFAULT_STRATEGY: Final = "fitness"
"""The simplest that is not measurably worse than the best (docs/search.md)."""


class AddStatus(IntEnum):
    """A candidate's status in the grid, in rising order; its evaluation is stored in any case."""

    NOT_ADDED = 0
    """It is not the elite of its cell."""
    IMPROVE_EXISTING = 1
    """It replaced its cell's elite, or that elite was measured again."""
    NEW = 2
    """It is the first elite of its cell."""


class RunState(StrEnum):
    """The state of a run."""

    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    """Stopped by its user, or its loop is gone."""


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
    without: tuple[str, ...] = ()
    """Mechanisms of `kernel_foundry.domain.mechanisms` that are switched off."""
    left_out: tuple[ModelLimit, ...] = ()
    """Models that were asked for and are not among `models`: they cannot do the task."""
    stop_at: float | None = None
    """Share of the traffic bound, on every timed workload, at which the run ends, or `NEVER`;
    None: `AT_TRAFFIC_BOUND`."""
    materials: tuple[Material, ...] = ()
    """Code that models are shown as a starting point."""
    first_candidates: tuple[KernelSource, ...] = ()
    """Judged before the first proposal; they are its parents."""
    operators: tuple[str, ...] = ()
    """Operators of the admitted reference (`domain.operator_list`), by which later runs find this
    run's winner. Empty where the reference cannot be exported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseHolder:
    """The loop that works on a run; no other may."""

    token: str
    """Made up by the loop: two of one process differ."""
    host: str
    """Name of its host, for people."""
    process_id: int
    process_start: int
    """When its process started, in clock ticks since boot; process ids are reused."""
    kernel: str
    """The operating system's kernel: its boot id, and the namespace of the process id. A process
    with the same two can see whether the holder lives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBudget:
    """What a run's loop may use; None: unlimited."""

    evaluations: int | None = None
    """For the whole run."""
    minutes: float | None = None
    """Left at the last renewal of the lease."""
    cost_usd: float | None = None
    """For the whole run."""
    tokens: int | None = None
    """For the whole run, prompts and replies."""
    requests_per_minute: int | None = None
    """To models, in any 60 seconds."""


LEASE_SECONDS: Final = 30.0
"""Lifetime of a lease that is not renewed."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Run:
    """A run as the store has it."""

    spec: RunSpec
    state: RunState
    created_unix_s: float
    evaluation_count: int
    best_speedup: float | None
    """Of its winner if it has ended, else of the best elite; None before anything passed."""
    cost_usd: float
    budget: RunBudget | None = None
    """Of the last loop that worked on it; None: no loop has."""
    best_speedup_interval: tuple[float, float] | None = None
    """95 % interval (lower, upper) of `best_speedup`."""
    owner: str = ""
    """User who made it, by a token; "" for nobody, where none was needed."""

    def __repr__(self) -> str:
        """Return a line: what it was asked is pages long."""
        speedup = "None" if self.best_speedup is None else f"{self.best_speedup:.3g}"
        return (
            f"Run(name={self.spec.name!r}, state={self.state.value!r},"
            f" evaluation_count={self.evaluation_count}, best_speedup={speedup})"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Elite:
    """The best candidate of a cell."""

    candidate: Candidate
    evaluation: Evaluation
    fitness: float
    measures: Measures
    island: str = ""
    """Role of the island that it belongs to."""


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
    """Number of the selection in its run, from 0; an evaluation names the one that it answers.
    Numbers rise and are used once, but a restart of the archive skips some."""
    island: str = ""
    """Role of the island that the proposal is for, such as "memory"."""
    user_hint: str = ""
    """What the run's user asks of the next proposals, in their own words."""
    banned_tricks: tuple[str, ...] = ()
    """Tricks that the proposal must not use; at most `domain.trick.MOST_TRICKS`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedEvaluation:
    """A candidate and its verdict in the archive."""

    sequence: int
    """1-based position among the run's evaluations."""
    candidate: Candidate
    evaluation: Evaluation
    archived_unix_s: float
    cost_usd: float
    island: str = ""
    """Role of the island that it belongs to."""
    selection: int | None = None
    """`Selection.sequence` that it answers; None for a candidate that no selection led to."""
    journal: str = ""
    """Selections made and dropped since the previous evaluation, such as "@0 s0 s1 d0"; a replay
    needs it. Empty where it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddResult:
    """What adding an evaluation did."""

    status: AddStatus
    improvement: float
    """Fitness gained in the cell, 0 when not added."""
    cell: Cell | None
    """None for a candidate that did not pass."""
    is_best: bool
    """True when it is the run's best elite now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeCount:
    """How many evaluations ended one way."""

    outcome: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IslandStats:
    """One island's archive in the field's terms."""

    name: str
    """Its role, such as "memory"."""
    elite_count: int
    qd_score: float
    """Sum of its elites' fitness."""
    objective_max: float | None
    migrations: int
    """Times that it took in elites of another island."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveStats:
    """The archive in the field's terms."""

    evaluation_count: int
    elite_count: int
    """Cells with an elite; several islands' elites of one cell count once."""
    coverage: float
    """Share of cells with an elite, in [0, 1]."""
    qd_score: float
    """Sum over cells of the fitness of the best elite."""
    objective_max: float | None
    objective_mean: float | None
    outcomes: tuple[OutcomeCount, ...]
    islands: tuple[IslandStats, ...] = ()
    candidate_count: int = 0
    """Different candidates among the evaluations. The rest are second measurements: of the winner
    at the end of a run, or of the best configuration of a sweep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvent:
    """Something that happened in a run: an evaluation was added, or the run ended."""

    sequence: int
    """That of the evaluation; for the end of a run, of its last evaluation. To continue after an
    event, watch after its sequence."""
    archived: ArchivedEvaluation | None = None
    state: RunState | None = None
    """The run's state; only in the last event, once the run is no longer running."""
