"""The events of a run, which terminal, plain lines and SDK all listen to."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kernel_foundry.domain.admission import Admission
from kernel_foundry.domain.archive import AddResult, Elite, OutcomeCount, Run
from kernel_foundry.domain.candidate import Candidate
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.steering import SteeringEvent
from kernel_foundry.domain.sweep import ConfigurationResult
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import EliteNotFoundError
from kernel_foundry.sdk.fleet.change import FleetChange
from kernel_foundry.sdk.loop.budget import Budget, BudgetUse, StopCause


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionStartEvent:
    """The request is valid; the reference runs now, and baselines are timed."""

    task: Task
    budget: Budget
    resumed: Run | None = None
    """The run that is resumed; None: a new one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionEvent:
    """The task was admitted; candidates follow."""

    run: Run
    admission: Admission
    budget: Budget
    spent: BudgetUse
    """What the run had used before a resume."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictEvent:
    """A candidate was judged, and its verdict is in the archive."""

    candidate: Candidate
    evaluation: Evaluation
    result: AddResult
    spent: BudgetUse
    best: Elite | None
    """The run's best elite now."""
    is_promotion: bool
    """True when an elite was measured again, its baseline in alternation with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LostCandidateEvent:
    """A candidate could not be judged, by no fault of its own; the run continues without it."""

    candidate: Candidate
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepEvent:
    """The other configurations of a promising candidate were swept.

    When one of them is better, its verdict comes next, as a `VerdictEvent`.
    """

    candidate: Candidate
    results: tuple[ConfigurationResult, ...]
    spent: BudgetUse


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsavedSweepEvent:
    """The landscape of a sweep could not be written to disk; the run continues without it."""

    candidate: Candidate
    path: Path
    """Where it should be."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """The run ended; its winner is in the archive."""

    run: Run
    cause: StopCause
    winner: Elite | None
    """None when nothing passed."""
    spent: BudgetUse
    outcomes: tuple[OutcomeCount, ...] = ()
    """How the evaluations ended."""

    @property
    def best(self) -> Elite:
        """The winner.

        Raises:
            EliteNotFoundError: nothing passed; the message counts how candidates ended.
        """
        if self.winner is None:
            raise nothing_passed(self.run.spec.name, self.outcomes)
        return self.winner


def nothing_passed(run: str, outcomes: tuple[OutcomeCount, ...]) -> EliteNotFoundError:
    """Return the error of a run without a correct kernel."""
    counted = ", ".join(f"{one.count} {one.outcome.upper()}" for one in outcomes)
    return EliteNotFoundError(
        f"nothing passed in run {run}: {counted or 'no candidate was judged'}", run=run
    )


Event = (
    AdmissionStartEvent
    | AdmissionEvent
    | VerdictEvent
    | LostCandidateEvent
    | SweepEvent
    | UnsavedSweepEvent
    | SteeringEvent
    | FleetChange
    | RunResult
)
Listener = Callable[[Event], None]
