"""One run's archive in memory: islands, transitions, and what is in flight.

It takes in every result in order, so elites and transitions are the same after a restart and in
another process; selections in flight are lost. `open_run.py` has the run's store and texts.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

import numpy as np

from archive_svc.grids.finer_map import FinerMap
from archive_svc.grids.grid import CELL_COUNT, Entry, entry_of
from archive_svc.grids.island import Island
from archive_svc.grids.island_model import ISLANDS, ONE_ISLAND, IslandModel, island_shares
from archive_svc.grids.result import Result
from archive_svc.search.choices_in_flight import ChoicesInFlight
from archive_svc.search.curiosity import Curiosity
from archive_svc.search.gradient import GradientField, gradient_cells, gradient_field
from archive_svc.search.proposal_choice import choose_operator, choose_parents
from archive_svc.search.selection import Choice, SelectionContext, temperature
from archive_svc.search.strategies import STRATEGIES, Strategy
from archive_svc.search.transitions import Transitions
from archive_svc.search.weighted_choice import choose
from kernel_foundry.domain import mechanisms
from kernel_foundry.domain.archive import AddResult, AddStatus, ArchiveStats, OutcomeCount
from kernel_foundry.domain.candidate import Operator
from kernel_foundry.domain.gradient import GradientCell
from kernel_foundry.domain.measures import Cell

SEEDS: Final = 4
"""How many selections of a new run are seeds, spread over the islands."""

YOUNG_SEEDS: Final = 8
"""In a young run no more seeds are asked for once so many passed: elites are better parents."""

EVALUATIONS_PER_SEED: Final = 5
"""In a longer run, at most one evaluation in so many is a seed that passes."""

MOST_FINER: Final = 64
"""Elites of the finer map that may be inspirations, the best ones: it has thousands of cells."""

_DRAWS: Final = 16
"""Attempts to find a choice that is not in flight already; after these, one is repeated."""


class RunArchive:
    """State of one run.

    Args:
        strategy: Key of `strategies`.
        seed: Of every random choice of the run.
        model: The islands.
        without: Mechanisms of `kernel_foundry.domain.mechanisms` that are switched off.
        strategies: Those that may be named.
    """

    def __init__(
        self,
        *,
        strategy: str,
        seed: int,
        model: IslandModel = ISLANDS,
        without: Sequence[str] = (),
        strategies: Mapping[str, Strategy] = STRATEGIES,
    ) -> None:
        self._strategies = strategies
        self._strategy = strategies[strategy]
        self._seed = seed
        self._without = frozenset(without)
        self._model = ONE_ISLAND if mechanisms.ISLANDS in self._without else model
        self._islands = {role.name: Island(role) for role in self._model.islands}
        self._finer: FinerMap | None = None
        """None before a strategy asks for it, and since a candidate in it was measured again."""
        self._transitions = Transitions()
        self._curiosity = Curiosity()
        self._outcomes: Counter[str] = Counter()
        self._newest: dict[str, Result] = {}
        """Newest result of each candidate, by digest."""
        self._repairs: Counter[str] = Counter()
        """By digest: how many repairs in a row led to a candidate, itself among them."""
        self._in_flight = ChoicesInFlight()
        self._fields: dict[str, tuple[int, GradientField]] = {}
        """By island: its field, and the number of results when it was made."""
        self._founders = 0
        """Candidates that passed, up to those that every island has."""
        self._passed_seeds = 0
        self._is_begun = False
        """Whether there are parents that the run was begun with."""
        self.pinned: Cell | None = None
        """Cell to aim at and to start from; None: the strategy decides."""
        self._banned: frozenset[Cell] = frozenset()
        self._uses_trick: Callable[[str], bool] | None = None
        self.evaluation_count = 0
        """Sequence of the last result taken in."""

    def __contains__(self, digest: str) -> bool:
        return digest in self._newest

    def take_in(self, result: Result) -> AddResult:
        """Take in a result; return what it changed."""
        self.evaluation_count = result.sequence
        self._outcomes[result.outcome] += 1
        choice = self._in_flight.land(result.selection)
        island = self._island(result.island)
        previous = self._newest.get(result.digest)
        is_new = previous is None
        if is_new and result.operator == Operator.REPAIR.value:
            self._repairs[result.digest] = 1 + self._repairs[result.parent]
        entry = entry_of(result)
        repairs = self._repairs[result.digest]
        status, improvement = island.take_in(result, entry, repairs=repairs)
        if is_new:
            self._count_passed_seed(result)
            self._learn(result, choice, status)
        else:
            for other in self._islands.values():
                if other is not island:
                    other.correct(result.digest, entry)
        self._newest[result.digest] = result
        if previous is not None and previous.passed:
            self._finer = None
        elif entry is not None and self._finer is not None:
            self._finer.add(entry)
        self._mix(island, result, entry, is_new=is_new)
        return AddResult(
            status=status,
            improvement=improvement,
            cell=result.cell if result.passed else None,
            is_best=entry is not None and self.best is entry,
        )

    def island_for(self, *, selection: int | None, parent: str, digest: str) -> str:
        """Return the name of the island that a candidate belongs to.

        That is the island of its earlier result if there is one, else that of its selection, else
        that of its parent, else the first island.
        """
        if digest in self._newest:
            return self._island(self._newest[digest].island).name
        choice = self._in_flight.get(selection)
        if choice is not None:
            return choice.island
        if parent in self._newest:
            return self._island(self._newest[parent].island).name
        return self._model.islands[0].name

    def is_in_flight(self, selection: int) -> bool:
        """Return whether a selection was made here and neither answered nor dropped."""
        return self._in_flight.get(selection) is not None

    def sequence_of(self, digest: str) -> int:
        """Return the sequence of the newest result of `digest`."""
        return self._newest[digest].sequence

    def select(self, number: int, strategy: str = "") -> Choice:
        """Return the choices for a proposal, in flight until it is answered or dropped.

        Args:
            number: Of the selection; with the run's seed it decides every random choice.
            strategy: Key of `strategies`, from now on; empty: the last one.
        """
        if strategy and self._strategies[strategy] is not self._strategy:
            self._strategy = self._strategies[strategy]
            self._fields.clear()
        # Seeds may be negative, which the generator's may not.
        rng = np.random.default_rng([self._seed % 2**64, number])
        choice = self._choose(self._choose_island(number, rng), number, rng)
        for _ in range(_DRAWS):
            if not self._in_flight.has(choice):
                break
            choice = self._choose(self._choose_island(number, rng), number, rng)
        if choice.parent is not None:
            self._islands[choice.island].assign(choice.operator.value, choice.parent)
        self._in_flight.start(number, choice)
        return choice

    def steer(
        self,
        pinned: Cell | None,
        banned: frozenset[Cell],
        uses_trick: Callable[[str], bool] | None = None,
    ) -> None:
        """Steer the selections from now on.

        Args:
            pinned: Cell to aim at and to start from.
            banned: Cells neither to aim at nor to start from.
            uses_trick: Whether a candidate, by its digest, uses what is banned: then it is no
                parent and no inspiration. None: nothing is.
        """
        self.pinned, self._banned, self._uses_trick = pinned, banned, uses_trick

    def withdraw_target(self, selection: int) -> None:
        """Forget the target of a selection in flight, so that nobody counts it as missed.

        The parent's verdict speaks against it, or its words name a trick that the user banned.
        """
        choice = self._in_flight.land(selection)
        if choice is not None:
            self._in_flight.start(selection, replace(choice, target=None))

    def drop(self, selection: int) -> None:
        """Forget a selection whose proposal came to nothing: it may be asked for again."""
        self._in_flight.land(selection)

    @property
    def best(self) -> Entry | None:
        """The elite with the highest fitness."""
        bests = (island.best for island in self._islands.values())
        return min(filter(None, bests), key=lambda e: e.rank, default=None)

    def elites(self) -> Sequence[Entry]:
        """Return the best of each cell over all islands, best first."""
        found: dict[Cell, Entry] = {}
        for island in self._islands.values():
            for entry in island.elites():
                if entry.cell not in found or entry.rank < found[entry.cell].rank:
                    found[entry.cell] = entry
        return sorted(found.values(), key=lambda e: e.rank)

    @property
    def islands(self) -> tuple[Island, ...]:
        """The islands, in the model's order."""
        return tuple(self._islands.values())

    def field(self, island: Island) -> GradientField:
        """Return the directions of an island's cells."""
        evaluation_count, field = self._fields.get(island.name, (-1, None))
        if field is None or evaluation_count != self.evaluation_count:
            field = gradient_field(self._transitions, island.worth, self._strategy.gradient)
            self._fields[island.name] = (self.evaluation_count, field)
        return field

    def gradient(self) -> Iterator[GradientCell]:
        """Yield all cells of the first island, then of the next."""
        for island in self._islands.values():
            yield from gradient_cells(island.name, self.field(island), island.elites())

    def stats(self) -> ArchiveStats:
        """Return the archive's statistics."""
        fitnesses = [e.fitness for e in self.elites()]
        return ArchiveStats(
            evaluation_count=self.evaluation_count,
            elite_count=len(fitnesses),
            coverage=len(fitnesses) / CELL_COUNT,
            qd_score=sum(fitnesses),
            objective_max=max(fitnesses, default=None),
            objective_mean=sum(fitnesses) / len(fitnesses) if fitnesses else None,
            outcomes=tuple(
                OutcomeCount(outcome=outcome, count=count)
                for outcome, count in sorted(self._outcomes.items())
            ),
            islands=tuple(island.stats() for island in self._islands.values()),
            candidate_count=len(self._newest),
        )

    def _island(self, name: str) -> Island:
        """Return the island called `name`; the first for a name that no island has."""
        return self._islands.get(name) or next(iter(self._islands.values()))

    def _choose_island(self, number: int, rng: np.random.Generator) -> Island:
        islands = list(self._islands.values())
        if self._is_at_start(number):
            return islands[number % len(islands)]
        best = [island.best_fitness for island in islands]
        shares = island_shares(self._model, best, temperature=temperature(np.array(best)))
        return islands[choose(rng, shares)]

    def _choose(self, island: Island, number: int, rng: np.random.Generator) -> Choice:
        others = (other.elites() for other in self._islands.values() if other is not island)
        visitors = self._allowed(list(chain.from_iterable(others)))
        context = SelectionContext(
            emphasis=island.role.emphasis,
            elites=self._parents(island, visitors),
            visitors=visitors,
            field=lambda: self.field(island),
            curiosity=self._curiosity,
        )
        partners = context.elites
        if self._strategy.has_finer_inspirations:
            finer = self._finer_map()
            partners = self._allowed(finer.elites())[:MOST_FINER]
            context = replace(context, visitors=partners, place=finer.place)
        operator = Operator.SEED
        repairable = next((d for d in island.repairable if not self._is_barred(d)), None)
        is_pinned = bool(context.elites) and context.elites[0].cell == self.pinned
        if not self._is_at_start(number):
            seed_count = self._passed_seeds + self._in_flight.seed_count
            operator = choose_operator(
                self._strategy,
                island,
                context.elites,
                rng,
                has_partner=max(len(context.elites), len(partners)) > 1,
                repairable=repairable,
                seed_is_due=seed_count < self._most_seeds and not is_pinned,
                without=self._without,
            )
        choice = choose_parents(
            self._strategy,
            operator,
            island,
            context,
            rng,
            repairable=repairable,
            without=self._without,
        )
        return self._aimed(choice)

    def _finer_map(self) -> FinerMap:
        if self._finer is None:
            results = sorted(self._newest.values(), key=lambda result: result.sequence)
            self._finer = FinerMap(filter(None, map(entry_of, results)))
        return self._finer

    def _parents(self, island: Island, visitors: Sequence[Entry]) -> Sequence[Entry]:
        """The elites that a proposal may start from, best first; of a pinned cell only, if any.

        An island without any starts from the elites of the others.
        """
        elites = self._allowed(island.elites())
        if elites and self.pinned is None:
            return elites
        others = sorted(visitors, key=lambda e: e.rank)
        elites = elites or others
        if self.pinned is None:
            return elites
        pinned = [entry for entry in (*elites, *others) if entry.cell == self.pinned]
        return pinned[:1] or elites

    def _allowed(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        if not self._banned and self._uses_trick is None:
            return entries
        return [e for e in entries if e.cell not in self._banned and not self._is_barred(e.digest)]

    def _is_barred(self, digest: str) -> bool:
        return self._uses_trick is not None and self._uses_trick(digest)

    def _aimed(self, choice: Choice) -> Choice:
        """A choice with the target that is steered to."""
        if choice.target in self._banned:
            return replace(choice, target=None)
        if self.pinned is None or choice.operator in (Operator.REPAIR, Operator.TEMPLATISE):
            return choice
        parent = self._newest.get(choice.parent or "")
        is_there = parent is not None and parent.cell == self.pinned
        return replace(choice, target=None if is_there else self.pinned)

    def _is_at_start(self, number: int) -> bool:
        """Return whether a selection is one of those that every new run starts with."""
        return number < SEEDS and not self._is_begun

    @property
    def _most_seeds(self) -> int:
        """Seeds that may have passed or be in flight; those that fail do not count."""
        return max(YOUNG_SEEDS, self.evaluation_count // EVALUATIONS_PER_SEED)

    def _count_passed_seed(self, result: Result) -> None:
        if result.passed and result.operator == Operator.SEED.value:
            self._passed_seeds += 1
            self._is_begun = self._is_begun or result.selection is None

    def _learn(self, result: Result, choice: Choice | None, status: AddStatus) -> None:
        parent = self._newest.get(result.parent)
        if parent is not None and parent.passed:
            self._curiosity.add(result.parent, was_added=status is not AddStatus.NOT_ADDED)
            if parent.cell and result.cell:
                self._transitions.add(
                    parent.cell,
                    result.cell,
                    gain=result.fitness - parent.fitness,
                    is_better=result.passed and result.fitness > parent.fitness,
                )
        target = choice.target if choice is not None else None
        if target is not None and result.cell != target:
            self._transitions.miss(target)

    def _mix(self, island: Island, result: Result, entry: Entry | None, *, is_new: bool) -> None:
        """Copy candidates between islands.

        Founders and new leaders of the run go to every island; the best elites go to an island that
        stagnates.
        """
        others = [i for i in self._islands.values() if i is not island]
        if entry is not None and is_new and self._founders < self._model.founding:
            self._founders += 1
            for other in others:
                other.receive([entry])
            return
        if mechanisms.MIGRATION in self._without:
            return
        if entry is not None and entry.fitness > max((i.best_fitness for i in others), default=0):
            for other in others:
                other.take_migrants([entry])
            return
        if island.stagnation < self._model.patience(result.sequence):
            return
        source = max(others, key=lambda i: i.best_fitness, default=None)
        found = [] if source is None else [e for e in source.elites() if e.digest not in island]
        island.take_migrants(found[: self._model.migrants])
