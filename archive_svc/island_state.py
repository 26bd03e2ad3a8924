"""What is known on one island: its grid, and what waits to be done.

Knows nothing of the other islands.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final

import numpy as np

from archive_svc.gradient import GradientField
from archive_svc.grid import CELL_COUNT, Entry, GridArchive
from archive_svc.islands import Island
from archive_svc.selection import Material
from archive_svc.told import Cell, ToldNumbers
from archive_svc.transitions import cell_index
from kernel_foundry.domain.archive import AddStatus
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
"""Outcomes with a kernel to mend: not a reply without one, not a refused cheat."""

MOST_REPAIRS: Final = 2
"""Repairs in a row, each of what the one before left broken; then the line is given up."""

WAITING_KEPT: Final = 16
"""Newest failures kept as parents of repairs, and newest candidates without parameters; older ones
have been overtaken."""


class IslandState:
    """State of one island.

    Args:
        role: What it is for.
    """

    def __init__(self, role: Island) -> None:
        self.role = role
        self.grid = GridArchive()
        self.stagnation = 0
        """Told evaluations since its best got better, or since it was given migrants."""
        self.migrations = 0
        """Times that it was given migrants."""
        self._repairable: OrderedDict[str, None] = OrderedDict()
        self._plain: OrderedDict[str, None] = OrderedDict()
        self._field: tuple[int, GradientField] | None = None

    @property
    def name(self) -> str:
        """Name of its role."""
        return self.role.name

    @property
    def best_fitness(self) -> float:
        """Of its best elite; 0 where there is none."""
        best = self.grid.best
        return 0.0 if best is None else best.fitness

    def take(self, told: ToldNumbers, *, repairs: int = 0) -> tuple[AddStatus, float]:
        """Take in a told evaluation; return its status and the fitness that its cell gained.

        Args:
            told: The evaluation.
            repairs: How many repairs in a row led to it, itself among them.
        """
        before = self.best_fitness
        if told.passed and told.cell is not None:
            if told.digest not in self.grid:  # measured again, it is nothing new to work on
                self._note_parameters(told)
            self._repairable.pop(told.digest, None)
            status, improvement = self.grid.add(entry_of(told, told.cell))
        else:
            self.grid.discard(told.digest)
            status, improvement = AddStatus.NOT_ADDED, 0.0
            if repairs < MOST_REPAIRS:
                self._note_failure(told)
        self.stagnation = 0 if self.best_fitness > before else self.stagnation + 1
        # Also where another process, or one that ended, made the assignment.
        if told.operator == Operator.REPAIR.value:
            self.assign_repair(told.parent)
        if told.operator == Operator.TEMPLATISE.value:
            self.assign_templatise(told.parent)
        return status, improvement

    def receive(self, migrants: Iterable[Entry]) -> None:
        """Let elites of another island compete here."""
        for entry in migrants:
            if entry.digest not in self.grid:
                self.grid.add(entry)

    def correct(self, told: ToldNumbers) -> None:
        """Take in new numbers of a candidate of another island, if it lives here too."""
        if told.digest not in self.grid:
            return
        if told.passed and told.cell is not None:
            self.grid.add(entry_of(told, told.cell))
        else:
            self.grid.discard(told.digest)

    def worth(self) -> np.ndarray:
        """Return the fitness of each cell's elite, 0 in empty cells; `(cell,)`."""
        worth = np.zeros(CELL_COUNT)
        for entry in self.grid.elites():
            worth[cell_index(entry.cell)] = entry.fitness
        return worth

    def cached(
        self, field_of: Callable[["IslandState"], GradientField], version: int
    ) -> GradientField:
        """Return the field that `field_of` makes, made anew for each `version`."""
        if self._field is None or self._field[0] != version:
            self._field = (version, field_of(self))
        return self._field[1]

    def material(self) -> Material:
        """Return what proposals may be made of besides elites."""
        elites = {e.digest for e in self.grid.elites()[:3]} if self._plain else set()
        return Material(repairable=list(self._repairable), plain=elites.intersection(self._plain))

    def assign_repair(self, digest: str) -> None:
        """Take a failure off the list: its repair is under way."""
        self._repairable.pop(digest, None)

    def assign_templatise(self, digest: str) -> None:
        """Take an elite off the list of those without parameters."""
        self._plain.pop(digest, None)

    def _note_parameters(self, told: ToldNumbers) -> None:
        if not told.has_parameters and told.operator != Operator.TEMPLATISE.value:
            _keep_newest(self._plain, told.digest)

    def _note_failure(self, told: ToldNumbers) -> None:
        if told.outcome in REPAIRABLE:
            _keep_newest(self._repairable, told.digest)


def _keep_newest(waiting: OrderedDict[str, None], digest: str) -> None:
    waiting[digest] = None
    while len(waiting) > WAITING_KEPT:
        waiting.popitem(last=False)


def entry_of(told: ToldNumbers, cell: Cell) -> Entry:
    """Return a correct candidate as the grid sees it."""
    return Entry(
        digest=told.digest,
        sequence=told.sequence,
        cell=cell,
        fitness=told.fitness,
    )
