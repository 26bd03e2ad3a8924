"""One run's archive in memory: islands with their grids, transitions, and what is in flight.

Fed every told evaluation's numbers in order, so that a restart or another process's tells give
the same elites and transitions; what was in flight is not known then. Knows nothing of SQL and of
texts.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from archive_svc.curiosity import Curiosity
from archive_svc.gradient import GradientField, gradient_field
from archive_svc.grid import CELL_COUNT, Entry
from archive_svc.in_flight import InFlight
from archive_svc.island_state import IslandState, entry_of
from archive_svc.islands import ISLANDS, IslandModel, island_shares
from archive_svc.selection import Material, SelectionPlan, View, inspirations, temperature
from archive_svc.strategies import STRATEGIES
from archive_svc.told import Cell, ToldNumbers
from archive_svc.transitions import Step, Transitions
from kernel_foundry.domain.archive import AddStatus, ArchiveStats, IslandStats, OutcomeCount
from kernel_foundry.domain.candidate import Operator

SEEDS: Final = 4
"""Selections of a new run that start from nothing, spread over the islands."""

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
    repairs: int
    """How many repairs in a row led to it, itself among them."""


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
        self._transitions = Transitions()
        self._curiosity = Curiosity()
        self._outcomes: Counter[str] = Counter()
        self._standings: dict[str, Standing] = {}
        self._in_flight = InFlight()
        self._best: Entry | None = None
        self.told_count = 0
        """Sequence of the last told evaluation taken in."""

    def take(self, told: ToldNumbers) -> Taken:
        """Take in a told evaluation."""
        self.told_count = told.sequence
        self._outcomes[told.outcome] += 1
        plan = self._in_flight.land(told.selection)
        island = self._islands.get(told.island) or next(iter(self._islands.values()))
        repairs = self._repairs(told)
        status, improvement = island.take(told, repairs=repairs)
        if told.digest not in self._standings:
            self._learn(told, plan, status)
        for other in self._islands.values():
            if other is not island:
                other.correct(told)
        self._standings[told.digest] = Standing(
            told.sequence, told.cell, told.fitness, told.passed, island.name, repairs
        )
        self._mix(island, told)
        self._best = min(
            (i.grid.best for i in self._islands.values() if i.grid.best),
            key=lambda e: e.rank,
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
        if digest in self._standings:
            return self._standings[digest].island
        asked_for = self._in_flight.island_of(selection)
        if asked_for is not None:
            return asked_for
        if parent in self._standings:
            return self._standings[parent].island
        return self._model.islands[0].name

    def __contains__(self, digest: str) -> bool:
        return digest in self._standings

    def is_in_flight(self, selection: int) -> bool:
        """Return whether a selection was made here and neither told nor dropped."""
        return self._in_flight.island_of(selection) is not None

    def sequence_of(self, digest: str) -> int:
        """Return the sequence of the newest told evaluation of `digest`."""
        return self._standings[digest].sequence

    def select(self, sequence: int) -> SelectionPlan:
        """Return the assignment of a proposal; it is in flight until it is told.

        Args:
            sequence: Number of the selection; with the run's seed it decides every random choice.
        """
        # Seeds may be negative, which the generator's may not.
        rng = np.random.default_rng([self._seed % 2**64, sequence])
        island = self._choose_island(sequence, rng)
        plan = self._plan(island, sequence, rng)
        for _ in range(_DRAWS):
            if plan.parent is None or not self._in_flight.has_assignment(plan):
                break
            plan = self._plan(island, sequence, rng)
        else:
            plan = _seed(island.name)
        if plan.operator is Operator.REPAIR and plan.parent is not None:
            island.assign_repair(plan.parent)
        if plan.operator is Operator.TEMPLATISE and plan.parent is not None:
            island.assign_templatise(plan.parent)
        self._in_flight.start(sequence, plan)
        return plan

    def drop(self, selection: int) -> None:
        """Forget a selection whose proposal came to nothing: it may be asked for again."""
        self._in_flight.land(selection)

    def elites(self) -> Sequence[Entry]:
        """Return the best of each cell over all islands, best first."""
        found: dict[Cell, Entry] = {}
        for island in self._islands.values():
            for entry in island.grid.elites():
                if entry.cell not in found or entry.rank < found[entry.cell].rank:
                    found[entry.cell] = entry
        return sorted(found.values(), key=lambda e: e.rank)

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
        return island.cached(self._field_of, self.told_count)

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
            candidate_count=len(self._standings),
        )

    def _choose_island(self, sequence: int, rng: np.random.Generator) -> IslandState:
        islands = list(self._islands.values())
        if sequence < SEEDS:
            return islands[sequence % len(islands)]
        best = [i.best_fitness for i in islands]
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
                island=island.name,
            )
        view = View(
            island=island.role,
            elites=elites,
            visitors=[
                e for i in self._islands.values() if i is not island for e in i.grid.elites()
            ],
            field=lambda: self.field(island),
            curiosity=self._curiosity,
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
            island=island.name,
        )

    def _operator(
        self,
        island: IslandState,
        elites: Sequence[Entry],
        material: Material,
        sequence: int,
        rng: np.random.Generator,
    ) -> Operator:
        weights = self._strategy.operators
        possible = [
            operator
            for operator, is_possible in (
                (Operator.SEED, True),
                (Operator.MUTATE, bool(elites)),
                (Operator.COMBINE, len(elites) > 1),
                (Operator.REPAIR, bool(material.repairable)),
                (Operator.TEMPLATISE, bool(material.plain)),
            )
            if is_possible and weights[operator] > 0
        ]
        if sequence < SEEDS or len(possible) == 1:
            return Operator.SEED
        shares = np.array([weights[operator] for operator in possible])
        return possible[int(rng.choice(len(possible), p=shares / shares.sum()))]

    def _field_of(self, island: IslandState) -> GradientField:
        return gradient_field(self._transitions, island.worth(), self._strategy.gradient)

    def _repairs(self, told: ToldNumbers) -> int:
        """Return how many repairs in a row led to a candidate; told again, it stays what it was."""
        known = self._standings.get(told.digest)
        if known is not None:
            return known.repairs
        if told.operator != Operator.REPAIR.value:
            return 0
        parent = self._standings.get(told.parent)
        return 1 + (parent.repairs if parent else 0)

    def _learn(self, told: ToldNumbers, plan: SelectionPlan | None, status: AddStatus) -> None:
        """Add a new candidate to what is known of directions and parents."""
        parent = self._standings.get(told.parent)
        if parent is not None and parent.passed:
            self._curiosity.add(told.parent, was_added=status is not AddStatus.NOT_ADDED)
            if parent.cell and told.cell:
                is_better = told.passed and told.fitness > parent.fitness
                gain = told.fitness - parent.fitness
                self._transitions.add(
                    Step(parent=parent.cell, child=told.cell, gain=gain, is_better=is_better)
                )
        if plan is not None and plan.target is not None and told.cell != plan.target:
            self._transitions.miss(plan.target)

    def _mix(self, island: IslandState, told: ToldNumbers) -> None:
        """Let candidates move between islands: founders to all, others where one stagnates."""
        others = [i for i in self._islands.values() if i is not island]
        if told.sequence <= self._model.founding:
            if told.passed and told.cell is not None:
                for other in others:
                    other.receive([entry_of(told, told.cell)])
            return
        if island.stagnation < self._model.stagnation:
            return
        island.stagnation = 0
        source = max(others, key=lambda i: i.best_fitness, default=None)
        if source is not None and source.grid.best is not None:
            island.migrations += 1
            island.receive(source.grid.elites()[: self._model.migrants])


def _seed(island: str) -> SelectionPlan:
    return SelectionPlan(
        operator=Operator.SEED,
        parent=None,
        inspirations=(),
        target=None,
        island=island,
    )


def _island_stats(island: IslandState) -> IslandStats:
    fitnesses = [e.fitness for e in island.grid.elites()]
    return IslandStats(
        name=island.name,
        elite_count=len(fitnesses),
        qd_score=sum(fitnesses),
        objective_max=max(fitnesses, default=None),
        migrations=island.migrations,
    )
