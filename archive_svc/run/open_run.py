"""A run that is open: its archive in memory, its texts and its store kept in step.

Several processes may have one run open: the numbers of selections come from blocks that the store
reserves, and what others added is taken in before each answer. Synchronous, used by one thread.
"""

from collections.abc import Iterator
from typing import Final

from archive_svc.grids.result import Result
from archive_svc.run.elite_cache import EliteCache
from archive_svc.run.journal import Journal
from archive_svc.search.directions.direction import direction
from archive_svc.search.run_archive import RunArchive
from archive_svc.search.selection import Choice
from archive_svc.store.rows import NewEvaluation, RunRow
from archive_svc.store.store import Store
from kernel_foundry.domain.archive import AddResult, AddStatus, Elite, Selection
from kernel_foundry.domain.candidate import Candidate
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.measures import Measures
from kernel_foundry.domain.steering import SteeringState
from kernel_foundry.plan.used_trick import used_trick

BLOCK: Final = 32
"""Numbers of selections reserved at once: one write for so many selections; a restart leaves out
at most so many."""


class OpenRun:
    """One run."""

    def __init__(self, store: Store, elites: EliteCache, row: RunRow) -> None:
        self._store = store
        self._elites = elites
        self.id: Final = row.id
        self._language: Language = row.spec.language
        self._strategy = row.spec.strategy
        self.name: Final = row.spec.name
        self.owner: Final = row.owner
        self.task: Final = row.spec.task
        self._numbers: Iterator[int] = iter(())
        self.archive = RunArchive(
            strategy=row.spec.strategy, seed=row.spec.seed, without=row.spec.without
        )
        if row.evaluation_count:
            for result in store.results(self.id, 0):
                self.archive.take_in(result)
        self._journal = Journal(self.archive.evaluation_count)
        self._steering = SteeringState()
        self._uses_trick: dict[str, bool] = {}
        """By digest, of those that were asked for since the last steering."""
        self._is_unsure = False
        """Whether an addition failed that may have been stored all the same."""

    def catch_up(self, evaluation_count: int, steering_count: int) -> None:
        """Take in what any process added since, up to these sequences."""
        if evaluation_count > self.archive.evaluation_count:
            self._take_in_all()
        self.steer(steering_count)

    def steer(self, sequence: int) -> None:
        """Put the run's steering events up to `sequence` in force."""
        before = self._steering.sequence
        if sequence <= before:
            return
        for event in self._store.steering(self.id, before, sequence - before):
            self._steering.take(event)
        pinned, banned = self._steering.pinned, self._steering.banned
        self._uses_trick.clear()
        self.archive.steer(
            pinned.cell if pinned else None,
            frozenset(m.cell for m in banned),
            self._has_banned_trick if self._steering.tricks else None,
        )
        self._journal.steered(self._steering.sequence)

    def select(self, strategy: str = "") -> Selection:
        """Return the selection of the next proposal, by the run's strategy or another one."""
        number = next(self._numbers, None)
        if number is None:
            first = self._store.reserve_selections(self.id, BLOCK)
            self._numbers = iter(range(first + 1, first + BLOCK))
            number = first
        return self.select_as(number, strategy)

    def select_as(self, number: int, strategy: str = "") -> Selection:
        """Return the selection of the proposal with that number, which was not made yet."""
        other = "" if strategy == self._strategy else strategy
        choice = self.archive.select(number, other or self._strategy)
        self._journal.made(number, other)
        return self._with_texts(choice, number)

    def drop(self, selection: int) -> None:
        """Forget a selection whose proposal came to nothing."""
        if self.archive.is_in_flight(selection):
            self.archive.drop(selection)
            self._journal.dropped(selection)

    def add(
        self,
        candidate: Candidate,
        evaluation: Evaluation,
        *,
        request_id: str,
        cost_usd: float,
        selection: int | None,
        archived_unix_s: float | None = None,
        name: str = "",
    ) -> AddResult:
        """Store a verdict, then take it in.

        Raises:
            RunNotFoundError: the run was deleted, or is not called `name` any more; "": any name.
            AlreadyExistsError, InvalidArgumentError: as `Store.add`.
        """
        if self._is_unsure:
            self._take_in_all()
        island = self.archive.island_for(
            selection=selection,
            parent=candidate.parents[0] if candidate.parents else "",
            digest=candidate.digest,
        )
        journal = self._journal.text
        self._is_unsure = True
        result, is_repeat = self._store.add(
            self.id,
            NewEvaluation(
                request_id=request_id,
                candidate=candidate,
                evaluation=evaluation,
                cost_usd=cost_usd,
                island=island,
                selection=selection,
                journal=journal,
                archived_unix_s=archived_unix_s,
            ),
            name,
        )
        self._is_unsure = False
        if is_repeat:
            cell = result.cell if result.passed else None
            return AddResult(status=AddStatus.NOT_ADDED, improvement=0.0, cell=cell, is_best=False)
        self._take_in_before(result)
        self._journal.forget(journal)
        added = self.archive.take_in(result)
        if added.status is not AddStatus.NOT_ADDED and evaluation.measures is not None:
            elite = Elite(
                candidate=candidate,
                evaluation=evaluation,
                fitness=evaluation.fitness,
                measures=evaluation.measures,
                island=island,
            )
            self._elites.keep(self.id, result.sequence, elite)
        return added

    def elites(self, limit: int | None) -> list[Elite]:
        """Return the best elite of each cell over all islands, best first; at most `limit`."""
        entries = self.archive.elites()[:limit]
        return self._elites.at(self.id, (entry.sequence for entry in entries))

    def _take_in_all(self) -> None:
        before = self.archive.evaluation_count
        for journal in self._store.journals(self.id, before):
            self._journal.forget(journal)  # this process may have added it without an answer
        for result in self._store.results(self.id, before):
            self.archive.take_in(result)

    def _take_in_before(self, own: Result) -> None:
        """Take in what others added between the last look and this process's own addition."""
        if own.sequence > self.archive.evaluation_count + 1:
            for result in self._store.results(self.id, self.archive.evaluation_count):
                if result.sequence >= own.sequence:
                    return
                self.archive.take_in(result)

    def _has_banned_trick(self, digest: str) -> bool:
        if digest not in self._uses_trick:
            (elite,) = self._elites.at(self.id, (self.archive.sequence_of(digest),))
            used = used_trick(self._steering.tricks, elite.candidate.source)
            self._uses_trick[digest] = bool(used)
        return self._uses_trick[digest]

    def _with_texts(self, choice: Choice, number: int) -> Selection:
        named = (choice.parent, *choice.inspirations)
        sequences = [self.archive.sequence_of(digest) for digest in named if digest is not None]
        elites = self._elites.at(self.id, sequences)
        parent = elites.pop(0) if choice.parent is not None else None
        aim = direction(
            parent,
            choice.target,
            language=self._language,
            banned_tricks=self._steering.tricks,
            is_pinned=choice.target == self.archive.pinned,
        )
        target = aim.target
        if target != choice.target:
            self.archive.withdraw_target(number)
        return Selection(
            operator=choice.operator,
            parent=parent,
            inspirations=tuple(elites),
            target=Measures(memory=target[0], algorithm=target[1], synchronization=target[2])
            if target is not None
            else None,
            hint=aim.words,
            sequence=number,
            island=choice.island,
            user_hint=self._steering.hint,
            banned_tricks=self._steering.tricks,
        )
