"""One run's archive in memory: islands with their grids, transitions, and what is in flight.

Fed every told evaluation's numbers in order, so that a restart or another process's tells give
the same state. Knows nothing of SQL and of texts.
"""

from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import Final

import numpy as np

from archive_svc.gradient import GradientField, gradient_field
from archive_svc.grid import CELL_COUNT, Entry
from archive_svc.island_state import IslandState
from archive_svc.islands import ISLANDS, IslandModel, island_shares
from archive_svc.selection import Material, SelectionPlan, View, inspirations, temperature
from archive_svc.strategies import STRATEGIES
from archive_svc.told import Cell, ToldNumbers
from archive_svc.transitions import Step
from kernel_foundry.domain.archive import AddStatus, ArchiveStats, IslandStats, OutcomeCount
from kernel_foundry.domain.candidate import Operator

IN_FLIGHT_KEPT: Final = 256
"""Selections remembered until they are told; older ones will not be."""

_DRAWS: Final = 16
"""Attempts to find an assignment that nobody has, before a seed is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What a told evaluation changed."""

    status: AddStatus
    improvement: float
    """Fitness that its cell gained; 0 when it was not added."""
    is_best: bool
    """Whether it is the run's best now."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What is remembered of every told candidate."""

    sequence: int
    cell: Cell | None
    fitness: float
    passed: bool
    island: str


class RunArchive:
    """State of one run.

    Args:
        strategy: Key of `archive_svc.strategies.STRATEGIES`.
        seed: Of every random choice of the run.
        model: The islands.
    """

    def __init__(self, *, strategy: str, seed: int, model: IslandModel = ISLANDS) -> None:
        self._strategy = STRATEGIES[strategy]
        self._seed = seed
        self._model = model
        self._islands = {i.name: IslandState(i) for i in model.islands}
        self._outcomes: Counter[str] = Counter()
        self._standings: dict[str, Standing] = {}
        self._in_flight: OrderedDict[int, SelectionPlan] = OrderedDict()
        self._best: Entry | None = None
        self.told_count = 0
        """Sequence of the last told evaluation taken in."""

    def take(self, told: ToldNumbers) -> Taken:
        """Take in a told evaluation."""
        self.told_count = told.sequence
        self._outcomes[told.outcome] += 1
        plan = self._in_flight.pop(told.selection, None) if told.selection is not None else None
        island = self._islands.get(told.island) or next(iter(self._islands.values()))
        before = self._standings.get(told.parent)
        self._standings[told.digest] = Standing(
            told.sequence, told.cell, told.fitness, told.passed, island.name
        )
        is_first = island.is_new(told.digest)
        status, improvement = island.take(told, aimed_at=plan.target if plan else None)
        if is_first and before is not None and before.passed and before.cell and told.cell:
            island.step(told, Step(
                parent=before.cell,
                child=told.cell,
                gain=told.fitness - before.fitness,
                is_better=told.passed and told.fitness > before.fitness,
            ), status)  # fmt: skip
        self._migrate(island)
        self._best = max(
            (i.grid.best for i in self._islands.values() if i.grid.best),
            key=lambda e: (e.fitness, -e.sequence),
            default=None,
        )
        return Taken(
            status=status,
            improvement=improvement,
            is_best=self._best is not None and self._best.sequence == told.sequence,
        )

    def island_for(self, *, selection: int | None, parent: str, digest: str) -> str:
        """Return the name of the island that a candidate belongs to.

        Where it was before; else that of its selection, of its parent, or the first.
        """
        for known in (digest,):
            if known in self._standings:
                return self._standings[known].island
        if selection is not None and selection in self._in_flight:
            return self._in_flight[selection].island
        if parent in self._standings:
            return self._standings[parent].island
        return self._model.islands[0].name

    def standing(self, digest: str) -> Standing | None:
        """Return what is known of a told candidate, or None."""
        return self._standings.get(digest)

    def sequence_of(self, digest: str) -> int:
        """Return the sequence of the newest told evaluation of `digest`."""
        return self._standings[digest].sequence

    def select(self, sequence: int) -> SelectionPlan:
        """Return the assignment of a proposal; it is in flight until it is told.

        Args:
            sequence: Number of the selection; with the run's seed it decides every random choice.
        """
        rng = np.random.default_rng([self._seed, sequence])
        taken = {plan.assignment for plan in self._in_flight.values()}
        island = self._choose_island(sequence, rng)
        plan = self._plan(island, sequence, rng)
        for _ in range(_DRAWS):
            if plan.parent is None or plan.assignment not in taken:
                break
            plan = self._plan(island, sequence, rng)
        else:
            plan = _seed(island.name)
        if plan.operator is Operator.REPAIR and plan.parent is not None:
            island.assign_repair(plan.parent)
        if plan.operator is Operator.TEMPLATISE and plan.parent is not None:
            island.assign_templatise(plan.parent)
        self._in_flight[sequence] = plan
        while len(self._in_flight) > IN_FLIGHT_KEPT:
            self._in_flight.popitem(last=False)
        return plan

    def elites(self) -> list[Entry]:
        """Return the best of each cell over all islands, best first."""
        found: dict[Cell, Entry] = {}
        for island in self._islands.values():
            for entry in island.grid.elites():
                if entry.cell not in found or entry.fitness > found[entry.cell].fitness:
                    found[entry.cell] = entry
        return sorted(found.values(), key=lambda e: (-e.fitness, e.sequence))

    @property
    def best(self) -> Entry | None:
        """The elite with the highest fitness, or None."""
        return self._best

    @property
    def islands(self) -> tuple[IslandState, ...]:
        """The islands, in the model's order."""
        return tuple(self._islands.values())

    def field(self, island: IslandState) -> GradientField:
        """Return the directions of an island's cells."""
        return gradient_field(island.transitions, island.worth(), self._strategy.gradient)

    def stats(self) -> ArchiveStats:
        """Return the archive's statistics."""
        fitnesses = [e.fitness for e in self.elites()]
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
            islands=tuple(_island_stats(island) for island in self._islands.values()),
        )

    def _choose_island(self, sequence: int, rng: np.random.Generator) -> IslandState:
        islands = list(self._islands.values())
        if sequence < len(islands):  # each starts with a seed
            return islands[sequence]
        best = [i.grid.best.fitness if i.grid.best else 0.0 for i in islands]
        shares = island_shares(self._model, best, temperature=temperature(np.array(best)))
        return islands[int(rng.choice(len(islands), p=shares))]

    def _plan(self, island: IslandState, sequence: int, rng: np.random.Generator) -> SelectionPlan:
        elites = island.grid.elites()
        material = island.material()
        operator = self._operator(island, elites, material, sequence, rng)
        if operator is Operator.SEED:
            return _seed(island.name)
        if operator is Operator.REPAIR:
            return SelectionPlan(
                operator=operator,
                parent=material.repairable[-1],
                inspirations=(),
                target=None,
                direction=(0.0, 0.0, 0.0),
                island=island.name,
            )
        view = View(
            island=island.role,
            grid=island.grid,
            elites=elites,
            visitors=[
                e for i in self._islands.values() if i is not island for e in i.grid.elites()
            ],
            field=island.cached(self.field),
            curiosity=island.curiosity,
        )
        if operator is Operator.TEMPLATISE:
            parent = next(e for e in elites if e.digest in material.plain)
        else:
            parent = elites[int(rng.choice(len(elites), p=self._strategy.parents(view)))]
        return SelectionPlan(
            operator=operator,
            parent=parent.digest,
            inspirations=inspirations(view, parent, rng),
            target=self._strategy.aim(view, parent, rng),
            direction=view.direction(parent.cell),
            island=island.name,
        )

    def _operator(
        self,
        island: IslandState,
        elites: list[Entry],
        material: Material,
        sequence: int,
        rng: np.random.Generator,
    ) -> Operator:
        chances = self._strategy.operators
        possible = [
            operator
            for operator, is_possible in (
                (Operator.SEED, True),
                (Operator.MUTATE, bool(elites)),
                (Operator.COMBINE, len(elites) > 1),
                (Operator.REPAIR, bool(material.repairable)),
                (Operator.TEMPLATISE, bool(material.plain)),
            )
            if is_possible and chances.weights[operator] > 0
        ]
        if sequence < len(self._islands) or len(possible) == 1:
            return Operator.SEED
        shares = island.credit.shares(chances.weights, possible, adapts=chances.adapts)
        return possible[int(rng.choice(len(possible), p=shares))]

    def _migrate(self, island: IslandState) -> None:
        """Give the best island's elites to `island` once it stagnates."""
        if island.stagnation < self._model.stagnation:
            return
        island.stagnation = 0
        others = [i for i in self._islands.values() if i is not island and i.grid.best]
        source = max(others, key=lambda i: i.grid.best.fitness, default=None)  # type: ignore[union-attr]
        if source is not None:
            island.receive(source.grid.elites()[: self._model.migrants])


def _island_stats(island: IslandState) -> IslandStats:
    fitnesses = [e.fitness for e in island.grid.elites()]
    return IslandStats(
        name=island.name,
        elite_count=len(fitnesses),
        qd_score=sum(fitnesses),
        objective_max=max(fitnesses, default=None),
        migrations=island.migrations,
    )


def _seed(island: str) -> SelectionPlan:
    return SelectionPlan(
        operator=Operator.SEED,
        parent=None,
        inspirations=(),
        target=None,
        direction=(0.0, 0.0, 0.0),
        island=island,
    )
