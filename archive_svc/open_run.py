"""A run that is open: its numbers in memory, its assignments, its tells.

Several processes may have one run open: the numbers of selections come from blocks that the store
reserves, and what others told is taken in before each answer. Synchronous, used by one thread.
"""

from collections.abc import Iterator
from typing import Final

from archive_svc.hints.hint import hint
from archive_svc.journal import Journal
from archive_svc.run_archive import RunArchive
from archive_svc.selection import SelectionPlan
from archive_svc.store.rows import RunRow, Telling
from archive_svc.store.store import Store
from archive_svc.texts import Texts
from archive_svc.told import ToldNumbers
from kernel_foundry.domain.archive import AddResult, AddStatus, Elite, Selection
from kernel_foundry.domain.candidate import Candidate
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.measures import Measures

BLOCK: Final = 32
"""Numbers of selections reserved at once: a write for so many selections, and at most so many
left out by a restart."""


class OpenRun:
    """One run.

    Args:
        store: Where it is.
        texts: Candidates and verdicts.
        row: The run's row.
    """

    def __init__(self, store: Store, texts: Texts, row: RunRow) -> None:
        self._store = store
        self._texts = texts
        self._id = row.id
        self._language: Language = row.spec.language
        self.task: Final = row.spec.task
        self._numbers: Iterator[int] = iter(())
        self.archive = RunArchive(strategy=row.spec.strategy, seed=row.spec.seed)
        if row.told_count:
            for told in store.told_numbers(self._id, 0):
                self.archive.take(told)
        self._journal = Journal(self.archive.told_count)
        self._is_unsure = False
        """Whether a tell failed that may have been stored all the same."""

    def has_made(self, selection: int) -> bool:
        """Return whether this process made that selection, which nobody told or dropped yet."""
        return self.archive.is_in_flight(selection)

    def knows(self, digest: str) -> bool:
        """Return whether the candidate was told, as far as this process knows."""
        return digest in self.archive

    def catch_up(self, told_count: int) -> None:
        """Take in what was told since, by whichever process, if it is not `told_count` already."""
        if told_count > self.archive.told_count:
            self._take_in_all()

    def select(self) -> Selection:
        """Return the assignment of the next proposal."""
        sequence = next(self._numbers, None)
        if sequence is None:
            first = self._store.reserve_selections(self._id, BLOCK)
            self._numbers = iter(range(first + 1, first + BLOCK))
            sequence = first
        return self.select_as(sequence)

    def select_as(self, sequence: int) -> Selection:
        """Return the assignment of the proposal with that number, which was not made yet."""
        plan = self.archive.select(sequence)
        self._journal.made(sequence)
        return self._fill_in(plan, sequence)

    def drop(self, selection: int) -> None:
        """Forget a selection whose proposal came to nothing."""
        if self.has_made(selection):
            self.archive.drop(selection)
            self._journal.dropped(selection)

    def tell(
        self,
        candidate: Candidate,
        evaluation: Evaluation,
        *,
        request_id: str,
        cost_usd: float,
        selection: int | None,
        told_unix_s: float | None = None,
    ) -> AddResult:
        """Store a verdict, then take it in."""
        if self._is_unsure:
            self._take_in_all()
        island = self.archive.island_for(
            selection=selection,
            parent=candidate.parents[0] if candidate.parents else "",
            digest=candidate.digest,
        )
        journal = self._journal.text
        self._is_unsure = True
        outcome = self._store.tell(
            self._id,
            Telling(
                request_id=request_id,
                candidate=candidate,
                evaluation=evaluation,
                cost_usd=cost_usd,
                island=island,
                selection=selection,
                journal=journal,
                told_unix_s=told_unix_s,
            ),
        )
        self._is_unsure = False
        numbers = outcome.numbers
        cell = numbers.cell if numbers.passed else None
        if outcome.is_repeat:
            return AddResult(status=AddStatus.NOT_ADDED, improvement=0.0, cell=cell, is_best=False)
        self._take_in_between(numbers)
        self._journal.strike(journal)
        taken = self.archive.take(numbers)
        if taken.status is not AddStatus.NOT_ADDED and evaluation.measures is not None:
            elite = Elite(
                candidate=candidate,
                evaluation=evaluation,
                fitness=evaluation.fitness,
                measures=evaluation.measures,
                island=island,
            )
            self._texts.keep(self._id, numbers.sequence, elite)
        return AddResult(
            status=taken.status, improvement=taken.improvement, cell=cell, is_best=taken.is_best
        )

    def elites(self, limit: int | None) -> list[Elite]:
        """Return the best elite of each cell over all islands, best first; at most `limit`."""
        entries = self.archive.elites()[:limit]
        return self._texts.at(self._id, (entry.sequence for entry in entries))

    def _take_in_all(self) -> None:
        """Take in what is told that is not known here."""
        before = self.archive.told_count
        for journal in self._store.journals(self._id, before):
            self._journal.strike(journal)  # where it is of this process: a tell without an answer
        for told in self._store.told_numbers(self._id, before):
            self.archive.take(told)

    def _take_in_between(self, own: ToldNumbers) -> None:
        """Take in what others told between the last look and this process's own tell."""
        if own.sequence > self.archive.told_count + 1:
            for told in self._store.told_numbers(self._id, self.archive.told_count):
                if told.sequence >= own.sequence:
                    return
                self.archive.take(told)

    def _fill_in(self, plan: SelectionPlan, sequence: int) -> Selection:
        digests = [d for d in (plan.parent, *plan.inspirations) if d is not None]
        elites = self._texts.at(self._id, (self.archive.sequence_of(d) for d in digests))
        parent = elites[0] if plan.parent is not None else None
        target = plan.target
        return Selection(
            operator=plan.operator,
            parent=parent,
            inspirations=tuple(elites[1:]) if parent else tuple(elites),
            target=Measures(memory=target[0], algorithm=target[1], synchronization=target[2])
            if target is not None
            else None,
            hint=hint(self._language, parent.measures.cell, target)
            if parent is not None and target is not None
            else "",
            sequence=sequence,
            island=plan.island,
        )
