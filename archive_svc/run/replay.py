"""The archive's part of a replay: a recorded run made again in another store.

The real search does again what the journals say, in the recorded order: selections under their
recorded numbers, evaluations at their recorded times; where the run was opened anew, it is opened
anew here. Which candidates the selections led to, `kernel_foundry.sdk.replay` finds out.
"""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Final

from archive_svc.run.elite_cache import EliteCache
from archive_svc.run.journal import JournalAct, JournalEntry, is_journal, read_journal
from archive_svc.run.open_run import OpenRun
from archive_svc.store.rows import archived_evaluation
from archive_svc.store.store import Store
from archive_svc.store.whole_run import WholeRuns
from kernel_foundry.domain.archive import ArchivedEvaluation, RunSpec, Selection
from kernel_foundry.domain.candidate import Candidate
from kernel_foundry.errors import (
    AlreadyExistsError,
    CorruptArchiveError,
    InvalidArgumentError,
    RunNotFoundError,
)

_SEVERAL: Final = "several archive services worked on it at once, and how they did is not known"


class RunReplay:
    """A recorded run and its repetition.

    Args:
        source_url: Store of the recorded run.
        run: Its name, "" for the newest.
        target_url: Another store; the repetition has the same name.

    Raises:
        RunNotFoundError: there is no such run.
        AlreadyExistsError: the other store has a run of that name, or is the same one.
        StoreUnavailableError, CorruptArchiveError: as of `Store`; also from methods.
    """

    def __init__(self, source_url: str, run: str, target_url: str) -> None:
        with ExitStack() as stack:
            self._source = stack.enter_context(closing(WholeRuns(source_url)))
            found = self._source.find(run)
            if found is None:
                raise RunNotFoundError(f"no run called {run!r}" if run else "no run yet", run=run)
            self._source_id, self.head = found
            self._insert(target_url)
            self._store = stack.enter_context(closing(Store(target_url)))
            self._stack = stack.pop_all()
        self._elites = EliteCache(self._store)
        self._opened = self._open()
        self._opened_at: int | None = None
        self._in_flight: dict[int, Selection] = {}
        """Selections that were neither answered nor dropped yet, by number."""
        self._last_selection = -1
        self._has_selected = False
        """Whether a selection was made since the run was opened."""
        self._request_id = ""
        self.selection_count = 0
        self.drop_count = 0
        self.restart_count = 0
        """Times that the run was opened anew after it had begun."""

    @property
    def spec(self) -> RunSpec:
        """The run's specification."""
        return self.head.spec

    def close(self) -> None:
        """Close both stores."""
        self._stack.close()

    def recorded(self) -> Iterator[ArchivedEvaluation]:
        """Yield the run's evaluations in order; add each again before the next is taken.

        The selections and drops before an evaluation were made again when it is yielded.

        Raises:
            InvalidArgumentError: a journal cannot be followed; it says why.
        """
        for row in self._source.evaluations(self._source_id):
            if row.sequence > self.head.evaluation_count:
                return
            self._request_id = row.request_id
            archived = archived_evaluation(row)
            self._follow_journal(archived)
            yield archived

    def take_selection(self, number: int) -> Selection | None:
        """Return a selection, in flight no more; None for one that a restart forgot."""
        return self._in_flight.pop(number, None)

    def add(self, archived: ArchivedEvaluation, candidate: Candidate) -> ArchivedEvaluation:
        """Add `candidate` with the recorded verdict; return what the other store has then."""
        self._opened.add(
            candidate,
            archived.evaluation,
            request_id=self._request_id,
            cost_usd=archived.cost_usd,
            selection=archived.selection,
            archived_unix_s=archived.archived_unix_s,
        )
        (again,) = self._store.evaluations(self._row_id, archived.sequence - 1, 1)
        return again

    def _insert(self, target_url: str) -> None:
        # How it ended and what was reserved are no results of the search: they are copied.
        with closing(WholeRuns(target_url)) as runs:
            if not runs.insert(self.head, ()):
                raise AlreadyExistsError(
                    f"the store has a run called {self.spec.name} already: choose another store",
                    run=self.spec.name,
                )

    def _open(self) -> OpenRun:
        row = self._store.find_run(self.spec.name)
        assert row is not None  # it was inserted
        self._row_id = row.id
        return OpenRun(self._store, self._elites, row)

    def _follow_journal(self, archived: ArchivedEvaluation) -> None:
        """Select and drop as the archive did before `archived` was added."""
        entry = self._entry(archived)
        if entry.opened_at != self._opened_at:
            if entry.opened_at != archived.sequence - 1:
                raise self._impossible(archived, _SEVERAL)
            if self._opened_at is not None:
                self.restart_count += 1
            self._opened, self._opened_at = self._open(), entry.opened_at
            self._in_flight.clear()
            self._has_selected = False
        for event in entry.events:
            match event.act:
                case JournalAct.STEERED:
                    self._opened.steer(event.number)
                case JournalAct.DROPPED:
                    self._opened.drop(event.number)
                    self._in_flight.pop(event.number, None)
                    self.drop_count += 1
                case JournalAct.MADE:
                    self._check_number(archived, event.number)
                    self._in_flight[event.number] = self._opened.select_as(
                        event.number, event.strategy
                    )
                    self.selection_count += 1

    def _entry(self, archived: ArchivedEvaluation) -> JournalEntry:
        if not archived.journal:
            raise self._impossible(archived, "how its selections were made was not recorded")
        if not is_journal(archived.journal):
            raise CorruptArchiveError(
                f"the journal of evaluation {archived.sequence} of run {self.spec.name} is damaged",
                run=self.spec.name,
            )
        entry = read_journal(archived.journal)
        if not entry.is_whole:
            raise self._impossible(archived, "more was selected before it than a journal holds")
        return entry

    def _check_number(self, archived: ArchivedEvaluation, selection: int) -> None:
        """Refuse a selection that another process made: one alone leaves no numbers out."""
        last = self._last_selection
        is_next = selection == last + 1 if self._has_selected else selection > last
        if not is_next or selection >= self.head.selected_count:
            raise self._impossible(archived, _SEVERAL)
        self._last_selection, self._has_selected = selection, True

    def _impossible(self, archived: ArchivedEvaluation, why: str) -> InvalidArgumentError:
        return InvalidArgumentError(
            f"run {self.spec.name} cannot be replayed beyond evaluation {archived.sequence - 1}:"
            f" {why}",
            field="run",
            run=self.spec.name,
        )
