"""An island: a grid, and its candidates that wait for a repair or for parameters."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from archive_svc.grids.grid import Entry, Grid
from archive_svc.grids.island_model import IslandRole
from archive_svc.grids.result import Result
from kernel_foundry.domain.archive import AddStatus, IslandStats
from kernel_foundry.domain.candidate import Operator
from kernel_foundry.domain.evaluation import EvaluationOutcome

REPAIRABLE: Final = frozenset(
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
"""Outcomes that a repair is tried for: not EXTRACTION_FAILED, which has no kernel, nor REJECTED."""

MOST_REPAIRS: Final = 2
"""Maximum consecutive repairs in a lineage."""

WAITING_KEPT: Final = 16
"""Failures that are kept as parents of repairs, and candidates without parameters: the newest of
each, since better kernels have been found after older ones."""

_TEMPLATISED_AMONG: Final = 3
"""Only one of so many best elites is given parameters."""


class Island(Grid):
    """State of one island.

    Args:
        role: Its name and emphasis.
    """

    def __init__(self, role: IslandRole) -> None:
        super().__init__()
        self.role = role
        self.stagnation = 0
        """Evaluations since its best got better, or since it received migrants."""
        self.migrations = 0
        """How often it received migrants."""
        self._repairable: OrderedDict[str, None] = OrderedDict()
        self._plain: OrderedDict[str, None] = OrderedDict()

    @property
    def name(self) -> str:
        """The name of its role."""
        return self.role.name

    def take_in(
        self, result: Result, entry: Entry | None, *, repairs: int = 0
    ) -> tuple[AddStatus, float]:
        """Take in a result of this island.

        Args:
            result: The result.
            entry: The result as `entry_of` gives it.
            repairs: How many repairs in a row led to it, itself included.

        Returns:
            The candidate's status in the grid, and the fitness that its cell gained.
        """
        before = self.best_fitness
        if entry is not None:
            if result.digest not in self:  # measured again, it is nothing new to work on
                self._note_parameters(result)
            self._repairable.pop(result.digest, None)
            status, improvement = self.add(entry)
        else:
            self.discard(result.digest)
            status, improvement = AddStatus.NOT_ADDED, 0.0
            if repairs < MOST_REPAIRS and result.outcome in REPAIRABLE:
                _keep_newest(self._repairable, result.digest)
        self.stagnation = 0 if self.best_fitness > before else self.stagnation + 1
        # Also where another process, or one that ended, made the selection.
        self.assign(result.operator, result.parent)
        return status, improvement

    def receive(self, migrants: Iterable[Entry]) -> None:
        """Let elites of another island compete here."""
        for entry in migrants:
            if entry.digest not in self:
                self.add(entry)

    def take_migrants(self, migrants: Sequence[Entry]) -> None:
        """Let elites of another island compete here, and count the migration if there are any."""
        self.migrations += bool(migrants)
        self.stagnation = 0
        self.receive(migrants)

    def correct(self, digest: str, entry: Entry | None) -> None:
        """Take in the new measurement of another island's candidate, if this island has it too."""
        if entry is None:
            self.discard(digest)
        elif digest in self:
            self.add(entry)

    @property
    def repairable(self) -> Iterator[str]:
        """Digests of the failures that nobody has tried to repair, the newest first."""
        return reversed(self._repairable)

    @property
    def templatisable(self) -> Entry | None:
        """The best elite without parameters that nobody has tried to give some, or None."""
        if not self._plain:
            return None
        best = self.elites()[:_TEMPLATISED_AMONG]
        return next((entry for entry in best if entry.digest in self._plain), None)

    def assign(self, operator: str, parent: str) -> None:
        """Note a selection: a candidate is repaired, or given parameters, only once."""
        if operator == Operator.REPAIR.value:
            self._repairable.pop(parent, None)
        elif operator == Operator.TEMPLATISE.value:
            self._plain.pop(parent, None)

    def stats(self) -> IslandStats:
        """Return the island's statistics."""
        elites = self.elites()
        return IslandStats(
            name=self.name,
            elite_count=len(elites),
            qd_score=sum(e.fitness for e in elites),
            objective_max=self.best.fitness if self.best else None,
            migrations=self.migrations,
        )

    def _note_parameters(self, result: Result) -> None:
        if not result.has_parameters and result.operator != Operator.TEMPLATISE.value:
            _keep_newest(self._plain, result.digest)


def _keep_newest(waiting: OrderedDict[str, None], digest: str) -> None:
    waiting[digest] = None
    while len(waiting) > WAITING_KEPT:
        waiting.popitem(last=False)
