"""Replays a run of a store: makes it again in another one and compares both.

The archive's own search selects in the recorded order (`archive_svc.run.replay`), the recorded
replies become candidates again (`generator_svc.recorded_replies`), and what was measured is added
as it was.
"""

from contextlib import AsyncExitStack, closing
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kernel_foundry.domain.archive import ArchivedEvaluation, Elite, Run, Selection
from kernel_foundry.domain.candidate import Candidate, Operator
from kernel_foundry.domain.exchange import Exchange
from kernel_foundry.domain.measures import Measures
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.paths import store_url
from kernel_foundry.ports import Generator
from kernel_foundry.scratch import scratch_folder
from kernel_foundry.sdk.local.archive import export_run, replay_into
from kernel_foundry.sdk.local.generator import recorded_replies
from kernel_foundry.sdk.loop.proposer import candidate_of
from kernel_foundry.sdk.replay.comparison import (
    Difference,
    DifferenceError,
    check_exports,
    check_members,
    check_report_data,
    check_spend,
)
from kernel_foundry.sdk.services import Directory, Targets

if TYPE_CHECKING:
    from kernel_foundry.sdk.local.archive import RunReplay
    from kernel_foundry.sdk.local.generator import RecordedReplies

_COMPARED: Final = ("operator", "parents", "digest", "generation", "model", "prompt_digest")
"""Of a candidate; what explains the others first."""

_ARCHIVED: Final = tuple(field.name for field in fields(ArchivedEvaluation))

_NO_MEASURES: Final = Measures(memory=0, algorithm=0, synchronization=0)

_NO_REPLY: Final = "no recorded reply"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayCounts:
    """Counts of the repeated steps."""

    evaluations: int
    selections: int
    dropped: int
    remade: int
    """Candidates made from recorded replies to selections that were made again."""
    judged_again: int
    """Verdicts on a candidate that was there before, as of a sweep or a promotion."""
    by_hand: int
    """Candidates that nobody had asked for: taken as recorded."""
    unselected: int
    """Candidates made from recorded replies whose selections were lost with a process that ended:
    operator and parents are taken as recorded."""
    restarts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOutcome:
    """The result of a replay."""

    run: str
    replayed: ReplayCounts | None = None
    """None where a difference ended it early."""
    elite_count: int = 0
    export_sha256: str = ""
    """Of both export files; empty where there is a difference."""
    difference: Difference | None = None
    """The first one; None: the runs are equal."""


async def replay(store: str, run: str, generator: Generator, *, into: str = "") -> ReplayOutcome:
    """Make a run again from what was recorded, and compare it with the recorded one.

    Args:
        store: URL of the run's store; "" for the default one.
        run: Its name; "" for the newest.
        generator: That has the run's exchanges.
        into: URL of the store for the repetition; "" for one that is removed at the end.

    Raises:
        RunNotFoundError: there is no such run.
        InvalidArgumentError: the run cannot be made again, or goes on meanwhile; it says why.
        AlreadyExistsError: `into` has a run of that name.
        StoreUnavailableError, CorruptArchiveError: as of the services.
    """
    source = store or store_url()
    before = await _run(source, run)
    with scratch_folder("replay") as temporary:
        folder = Path(temporary)
        target = into or f"sqlite:///{folder / 'replay.db'}"
        with closing(replay_into(source, run, target)) as archive:
            name = archive.spec.name
            exchanges = await _exchanges(generator, name)
            try:
                replies = recorded_replies(archive.spec.language, exchanges)
                counts = _Repetition(archive, replies).make()
                check_spend((await generator.account(name)).spend, exchanges)
                elite_count = await _check_report_data(source, target, name)
                digest = _check_exports(source, target, name, folder)
            except DifferenceError as error:
                if not exchanges:
                    raise _unknown_here(name) from error
                more = await generator.exchanges(name, after=exchanges[-1].sequence, limit=1)
                if more or await _run(source, name) != before:
                    raise _goes_on(name) from error
                return ReplayOutcome(run=name, difference=error.difference)
    return ReplayOutcome(run=name, replayed=counts, elite_count=elite_count, export_sha256=digest)


def _unknown_here(run: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"the generator has no exchange of run {run}: replay it where it was made, or name the "
        "generator that made it",
        field="run",
        run=run,
    )


def _goes_on(run: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"run {run} goes on while it is replayed: replay it once it has ended", field="run", run=run
    )


async def _run(source: str, name: str) -> Run:
    directory = Directory(Targets(store=source))
    try:
        return await (await directory.archive()).get_run(name)
    finally:
        await directory.close()


async def _exchanges(generator: Generator, run: str) -> tuple[Exchange, ...]:
    found: list[Exchange] = []
    while page := await generator.exchanges(run, after=found[-1].sequence if found else 0):
        found.extend(page)
    return tuple(found)


async def _check_report_data(source: str, target: str, run: str) -> int:
    async with AsyncExitStack() as stack:
        archives = []
        for url in (source, target):
            directory = Directory(Targets(store=url))
            stack.push_async_callback(directory.close)
            archives.append(await directory.archive())
        return await check_report_data(archives[0], archives[1], run)


def _check_exports(source: str, target: str, run: str, folder: Path) -> str:
    recorded, replayed = folder / "recorded.run.gz", folder / "replayed.run.gz"
    export_run(source, run, recorded)
    export_run(target, run, replayed)
    return check_exports(recorded, replayed)


class _Repetition:
    """One repetition of a run.

    Args:
        archive: Selects again, and takes in the verdicts again.
        replies: What was proposed.
    """

    def __init__(self, archive: "RunReplay", replies: "RecordedReplies") -> None:
        self._archive = archive
        self._replies = replies
        self._known: dict[str, Elite] = {}
        """Candidates with their latest verdicts, by digest."""
        self._remade = self._judged_again = self._by_hand = self._unselected = 0

    def make(self) -> ReplayCounts:
        """Make the run again.

        Raises:
            DifferenceError: something came out otherwise than it was recorded.
            InvalidArgumentError: how the run was made is not known.
        """
        count = 0
        for archived in self._archive.recorded():
            candidate = self._candidate(archived)
            known = self._known.get(candidate.digest)
            self._known[candidate.digest] = Elite(
                candidate=candidate if known is None else known.candidate,
                evaluation=archived.evaluation,
                fitness=archived.evaluation.fitness,
                measures=archived.evaluation.measures or _NO_MEASURES,
            )
            check_members(
                _where(archived), _ARCHIVED, archived, self._archive.add(archived, candidate)
            )
            count += 1
        return ReplayCounts(
            evaluations=count,
            selections=self._archive.selection_count,
            dropped=self._archive.drop_count,
            remade=self._remade,
            judged_again=self._judged_again,
            by_hand=self._by_hand,
            unselected=self._unselected,
            restarts=self._archive.restart_count,
        )

    def _candidate(self, archived: ArchivedEvaluation) -> Candidate:
        """Return the archived candidate, made again as far as it can be."""
        if archived.selection is None:
            return self._judged_before_or_by_hand(archived)
        selection = self._archive.take_selection(archived.selection)
        if selection is None:
            selection = self._selection_of(archived.candidate, archived.selection)
            self._unselected += 1
        else:
            self._remade += 1
        language = self._archive.spec.language
        proposals = self._replies.proposals(selection)
        candidates = [candidate_of(proposal, selection, language) for proposal in proposals]
        if not candidates:
            digest = archived.candidate.digest
            raise DifferenceError(_where(archived), "digest", recorded=digest, replayed=_NO_REPLY)
        if archived.candidate not in candidates:
            check_members(_where(archived), _COMPARED, archived.candidate, candidates[-1])
        return archived.candidate

    def _selection_of(self, candidate: Candidate, number: int) -> Selection:
        """Return what a candidate answered, as far as replies depend on it."""
        parents = tuple(self._known[digest] for digest in candidate.parents)
        inspirations = parents[1:]
        if candidate.operator is Operator.COMBINE and not inspirations:
            # It failed, so it names its parent alone; whom it was shown decides nothing.
            inspirations = parents
        return Selection(
            operator=candidate.operator,
            parent=parents[0] if parents else None,
            inspirations=inspirations,
            sequence=number,
        )

    def _judged_before_or_by_hand(self, archived: ArchivedEvaluation) -> Candidate:
        known = self._known.get(archived.candidate.digest)
        if known is None:
            self._by_hand += 1
            return archived.candidate
        self._judged_again += 1
        check_members(_where(archived), _COMPARED, archived.candidate, known.candidate)
        return known.candidate


def _where(archived: ArchivedEvaluation) -> str:
    answered = "" if archived.selection is None else f" (selection {archived.selection})"
    return f"evaluation {archived.sequence}{answered}"
