"""One run's archive in memory: grid, failures worth repairing, outcome counts.

Built from the store's numbers alone and fed every told row in order, so a restart or another
process's tells give the same state. Knows nothing of SQL.
"""

from collections import Counter, OrderedDict

from archive_svc.grid import CELL_COUNT, Entry, GridArchive
from archive_svc.told import ToldNumbers
from kernel_foundry.domain.archive import AddStatus, ArchiveStats, OutcomeCount
from kernel_foundry.domain.candidate import Operator
from kernel_foundry.domain.evaluation import EvaluationOutcome

REPAIRABLE = frozenset(
    {
        EvaluationOutcome.PLAN_ERROR.value,
        EvaluationOutcome.COMPILE_ERROR.value,
        EvaluationOutcome.LAUNCH_ERROR.value,
        EvaluationOutcome.CRASHED.value,
        EvaluationOutcome.TIMEOUT.value,
        EvaluationOutcome.WRONG_RESULT.value,
        EvaluationOutcome.NONDETERMINISTIC.value,
    }
)
"""Outcomes with a kernel to mend: not a reply without one, not a refused cheat."""

REPAIRABLE_KEPT = 16
"""Newest failures kept as parents of repairs; older ones have been overtaken."""


class RunArchive:
    """State of one run.

    Args:
        strategy: Key of `archive_svc.selection.STRATEGIES`.
        seed: Of every random choice of the run.
    """

    def __init__(self, *, strategy: str, seed: int) -> None:
        self.strategy = strategy
        self.seed = seed
        self.grid = GridArchive()
        self.told_count = 0
        """Sequence of the last told row taken in."""
        self.selected_count = 0
        """Selections handed out; a resumed run goes on from what was told."""
        self._outcomes: Counter[str] = Counter()
        self._repairable: OrderedDict[str, None] = OrderedDict()
        self._newest: dict[str, int] = {}

    def take(self, row: ToldNumbers) -> tuple[AddStatus, float]:
        """Take in a told row; return its status and the fitness its cell gained."""
        self.told_count = row.sequence
        self.selected_count = max(self.selected_count, row.sequence)
        self._outcomes[row.outcome] += 1
        self._newest[row.digest] = row.sequence
        if row.operator == Operator.REPAIR.value:
            self._repairable.pop(row.parent, None)
        if row.passed:
            return self.grid.add(_entry(row))
        self.grid.discard(row.digest)
        if row.outcome in REPAIRABLE:
            self._repairable[row.digest] = None
            while len(self._repairable) > REPAIRABLE_KEPT:
                self._repairable.popitem(last=False)
        return AddStatus.NOT_ADDED, 0.0

    def repairable(self) -> list[str]:
        """Return digests of failed candidates nobody has tried to repair, oldest first."""
        return list(self._repairable)

    def assign_repair(self, digest: str) -> None:
        """Take a failure off the list: its repair is under way."""
        self._repairable.pop(digest, None)

    def sequence_of(self, digest: str) -> int:
        """Return the sequence of the newest told evaluation of `digest`."""
        return self._newest[digest]

    def stats(self) -> ArchiveStats:
        """Return the archive's statistics."""
        fitnesses = [e.fitness for e in self.grid.elites()]
        return ArchiveStats(
            told_count=self.told_count,
            elite_count=len(fitnesses),
            coverage=len(fitnesses) / CELL_COUNT,
            qd_score=sum(fitnesses),
            objective_max=max(fitnesses, default=None),
            objective_mean=sum(fitnesses) / len(fitnesses) if fitnesses else None,
            outcomes=tuple(
                OutcomeCount(outcome=outcome, count=count)
                for outcome, count in sorted(self._outcomes.items())
            ),
        )


def _entry(row: ToldNumbers) -> Entry:
    assert row.cell is not None
    return Entry(
        digest=row.digest,
        sequence=row.sequence,
        cell=row.cell,
        fitness=row.fitness,
        optimistic=row.optimistic,
    )
