"""A recorded run made again in another store: by the real search, in the recorded order.

What the journals say is done again, selections under their recorded numbers, tells at their
recorded times; a process that opened the run anew is one that opens it anew here. Knows nothing
of models: whoever uses it says which candidates the selections led to.
"""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Final

from archive_svc.journal import JournalEntry, is_journal, read_journal
from archive_svc.open_run import OpenRun
from archive_svc.store.rows import told_evaluation
from archive_svc.store.store import Store
from archive_svc.store.whole_run import WholeRuns
from archive_svc.texts import Texts
from kernel_foundry.domain.archive import RunSpec, Selection, ToldEvaluation
from kernel_foundry.domain.candidate import Candidate
from kernel_foundry.errors import (
    AlreadyExistsError,
    CorruptArchiveError,
    InvalidArgumentError,
    RunNotFoundError,
)

_SEVERAL: Final = "several archive services worked on it at once, and how they did is not known"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What the journal before one tell came to."""

    selections: tuple[Selection, ...]
    """Those made, in order."""
    dropped: tuple[int, ...]
    """Numbers of those dropped, which may have been made earlier."""
    is_reopened: bool
    """Whether the archive was opened anew: what was in flight before is not known any more."""


class Rerun:
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
        self._texts = Texts(self._store)
        self._opened = self._open()
        self._opened_at: int | None = None
        self._last_selection = -1
        self._has_selected = False
        """Whether a selection was made since the run was opened."""
        self._request_id = ""

    @property
    def spec(self) -> RunSpec:
        """What the run was asked to do."""
        return self.head.spec

    def close(self) -> None:
        """Close both stores."""
        self._stack.close()

    def recorded(self) -> Iterator[ToldEvaluation]:
        """Yield what was told, in order; each is prepared and told before the next is taken."""
        for row in self._source.tellings(self._source_id):
            if row.sequence > self.head.told_count:
                return
            self._request_id = row.request_id
            yield told_evaluation(row)

    def prepare(self, told: ToldEvaluation) -> Prepared:
        """Select and drop as the archive did before it was told `told`.

        Raises:
            InvalidArgumentError: the journal cannot be followed; it says why.
        """
        entry = self._entry(told)
        is_reopened = entry.opened_at != self._opened_at
        if is_reopened:
            if entry.opened_at != told.sequence - 1:
                raise self._impossible(told, _SEVERAL)
            self._opened = self._open()
            self._has_selected = False
        selections, dropped = [], []
        for event in entry.events:
            if event.is_drop:
                self._opened.drop(event.selection)
                dropped.append(event.selection)
            else:
                self._check_number(told, event.selection)
                selections.append(self._opened.select_as(event.selection))
        was_open = self._opened_at is not None
        self._opened_at = entry.opened_at
        return Prepared(
            selections=tuple(selections),
            dropped=tuple(dropped),
            is_reopened=is_reopened and was_open,
        )

    def tell(self, told: ToldEvaluation, candidate: Candidate) -> ToldEvaluation:
        """Tell `candidate` with the recorded verdict; return what the other store has then."""
        self._opened.tell(
            candidate,
            told.evaluation,
            request_id=self._request_id,
            cost_usd=told.cost_usd,
            selection=told.selection,
            told_unix_s=told.told_unix_s,
        )
        (again,) = self._store.told(self._row_id, told.sequence - 1, 1)
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
        assert row is not None  # runs are never removed
        self._row_id = row.id
        return OpenRun(self._store, self._texts, row)

    def _entry(self, told: ToldEvaluation) -> JournalEntry:
        if not told.journal:
            raise self._impossible(told, "it was told by a version that kept no journal")
        if not is_journal(told.journal):
            raise CorruptArchiveError(
                f"the journal of evaluation {told.sequence} of run {self.spec.name} is damaged",
                run=self.spec.name,
            )
        entry = read_journal(told.journal)
        if not entry.is_whole:
            raise self._impossible(told, "more was selected before it than a journal holds")
        return entry

    def _check_number(self, told: ToldEvaluation, selection: int) -> None:
        """Refuse a selection that another process made: one alone leaves no numbers out."""
        last = self._last_selection
        is_next = selection == last + 1 if self._has_selected else selection > last
        if not is_next or selection >= self.head.selected_count:
            raise self._impossible(told, _SEVERAL)
        self._last_selection, self._has_selected = selection, True

    def _impossible(self, told: ToldEvaluation, why: str) -> InvalidArgumentError:
        return InvalidArgumentError(
            f"run {self.spec.name} cannot be made again from evaluation {told.sequence} on: {why}",
            field="run",
            run=self.spec.name,
        )
