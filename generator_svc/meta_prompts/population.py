"""The population of guidance: one for each language, kept in the generator's store.

Chooses for each proposal, credits what came of it, and has a model make a better one now and then.
Decisions are in `guidance_choice.py`, prompts in `editor.py`, accepted edits in `section_edits.py`.
Whatever is cancelled here leaves the store as it was, or done.
"""

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Final

import sqlalchemy as sa

from generator_svc.meta_prompts import guidance_choice, tables
from generator_svc.meta_prompts.editor import asked_again, editing_prompt
from generator_svc.meta_prompts.guidance_choice import PopulationMember, PromptState, Worths
from generator_svc.meta_prompts.records import PromptRecord
from generator_svc.meta_prompts.section_edits import EditedSections, edited
from generator_svc.meta_prompts.sections import Sections, seed_sections
from generator_svc.meta_prompts.tables import Credit, EditRow, SectionsRow
from generator_svc.store.store import GeneratorStore
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.exchange import ChatMessage
from kernel_foundry.domain.language import Language
from kernel_foundry.errors import LlmConfigurationError, LlmQuotaError, LlmUnavailableError

Ask = Callable[[tuple[ChatMessage, ...]], Awaitable[str]]
"""Asks a model and returns its reply's text."""

CREDITS_BETWEEN_EDITS: Final = 10
"""Verdicts in a language after which better guidance is asked for."""

_RECORDS_FOR_AN_EDIT: Final = 5
"""Fewer make no diagnosis."""

_MAX_ATTEMPTS: Final = 2
_MAX_TRIED: Final = 3
"""Edits that did not pay, shown to the editor."""


class EditResult(StrEnum):
    """The result of a request for better guidance."""

    ADDED = "added"
    REFUSED = "refused"
    """Its edits did not apply, or made what cannot be shown."""
    DUPLICATE = "duplicate"
    """The very text is there, or was tried before."""
    UNANSWERED = "unanswered"
    """No model answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenPrompt:
    """Guidance for one proposal."""

    id: int
    sections: Sections
    is_evolved: bool
    """Whether a model edited it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """A model's edits of guidance, all attempts together."""

    sections: Sections | None
    failure: str = ""
    diagnosis: str = ""
    is_answered: bool = True


class MetaPrompts:
    """The guidance of every language.

    Args:
        store: Where it is kept.
        most_members: Most prompts of a language that are not dropped.
        clock: Seconds since the epoch.
    """

    def __init__(
        self,
        store: GeneratorStore,
        *,
        most_members: int = 12,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._most_members = most_members
        self._clock = clock
        self._seeded: set[Language] = set()
        self._editing: set[Language] = set()

    async def choose(
        self, *, run: str, language: Language, sequence: int, seed: int
    ) -> ChosenPrompt:
        """Return the guidance for a proposal; the same population and request give the same.

        Args:
            run: Name of the run.
            language: What the proposal is written in.
            sequence: Number of the selection.
            seed: Of the run.
        """
        await self._ensure_seed(language)

        def work(connection: sa.Connection) -> ChosenPrompt:
            members, known = _population(connection, language)
            chosen = guidance_choice.choose(members, known, run=run, seed=seed, sequence=sequence)
            row = tables.find(connection, chosen)
            assert row is not None  # it was among the members of this transaction
            return ChosenPrompt(
                id=row.id, sections=row.sections, is_evolved=row.state is not PromptState.SEED
            )

        return await self._store.read(work)

    async def credit(
        self,
        prompt_id: int,
        *,
        run: str,
        gain: float,
        outcome: EvaluationOutcome,
        request_id: str,
    ) -> None:
        """Credit a prompt with what a proposal made under it gained; once for each request.

        A trial that this ends is judged at once.

        Args:
            prompt_id: As chosen.
            run: Name of the run.
            gain: Fitness gained over the parent, 0 when worse or failed; of a seed, its fitness.
            outcome: The verdict.
            request_id: Names the proposal.
        """
        credit = Credit(request_id=request_id, run=run, gain=gain, outcome=outcome.value)

        def work(connection: sa.Connection) -> None:
            row = tables.find(connection, prompt_id, is_locked=True)
            # A proposal of another store may name a row that is not here: its credit is lost.
            if row is not None and tables.add_credit(connection, row, credit):
                members, known = _population(connection, row.language)
                member = next(m for m in members if m.id == row.id)
                tables.set_state(connection, row.id, guidance_choice.next_state(member, known))

        await self._store.write(work)

    async def is_due(self, language: Language) -> bool:
        """Return whether it is time to ask for better guidance: nothing is on trial or edited."""
        if language in self._editing:
            return False

        def work(connection: sa.Connection) -> bool:
            members = tables.members(connection, language)
            waited = tables.credits_since_edit(connection, language)
            is_free = all(m.state is not PromptState.TRIAL for m in members)
            return is_free and waited >= CREDITS_BETWEEN_EDITS

        return await self._store.read(work)

    async def evolve(
        self, run: str, language: Language, ask: Ask, records: tuple[PromptRecord, ...]
    ) -> int | None:
        """Have a model improve the best guidance; return the id of what is now on trial.

        None when nothing came of it, for which the store has the reason, or when there are no
        records or it is being done already. May be cancelled at any time: then it did not happen.

        Args:
            run: Who pays for it.
            language: What the guidance is on.
            ask: Asks a model.
            records: Of recent proposals in this language.
        """
        if language in self._editing:
            return None
        self._editing.add(language)
        try:
            return await self._evolve(run, language, ask, records)
        finally:
            self._editing.discard(language)

    async def list_prompts(self, language: Language) -> tuple[SectionsRow, ...]:
        """Return every guidance that was ever tried, oldest first."""
        await self._ensure_seed(language)
        return await self._store.read(partial(tables.listed, language=language))

    async def list_edits(self, language: Language) -> tuple[EditRow, ...]:
        """Return the results of requests for better guidance, newest first."""
        return await self._store.read(
            partial(tables.edits, language=language, limit=tables.REMEMBERED_EDITS)
        )

    async def _evolve(
        self, run: str, language: Language, ask: Ask, records: tuple[PromptRecord, ...]
    ) -> int | None:
        await self._ensure_seed(language)
        parent = await self._store.read(partial(_to_edit, language=language, records=records))
        if parent is None:
            return None
        row, tried = parent
        own = tuple(record for record in records if record.prompt == row.id)
        answer = await _edits(ask, editing_prompt(language, row.sections, own, tried), row, own)

        def add(connection: sa.Connection) -> int | None:
            child, result = self._add(connection, row, answer)
            edit = EditRow(
                run=run,
                language=language,
                parent=row.id,
                child=child,
                result=result.value,
                reason=answer.failure or answer.diagnosis,
                created_unix_s=self._clock(),
            )
            tables.add_edit(connection, edit)
            return child

        return await self._store.write(add)

    def _add(
        self, connection: sa.Connection, parent: SectionsRow, answer: _Answer
    ) -> tuple[int | None, EditResult]:
        """Put edited guidance on trial; the one that is worth least makes room."""
        if answer.sections is None:
            return None, EditResult.REFUSED if answer.is_answered else EditResult.UNANSWERED
        members, known = _population(connection, parent.language)
        child = tables.add(
            connection,
            parent.language,
            answer.sections,
            state=PromptState.TRIAL,
            parent=parent.id,
            now_unix_s=self._clock(),
        )
        if child is None:
            return None, EditResult.DUPLICATE
        if sum(m.state is not PromptState.DROPPED for m in members) >= self._most_members:
            spare = guidance_choice.least_missed(members, known)
            tables.set_state(connection, spare, PromptState.DROPPED)
        return child, EditResult.ADDED

    async def _ensure_seed(self, language: Language) -> None:
        """Bring the seed up to date with its files; editing them creates a new seed."""
        if language in self._seeded:
            return
        seed = seed_sections(language)

        def work(connection: sa.Connection) -> None:
            # First: a seed that another process commits between the two reads is known then, and
            # not dropped as one of other files.
            members = tables.members(connection, language)
            known = tables.with_digest(connection, language, seed.digest)
            for member in members:
                if member.state is PromptState.SEED and member.id != known:
                    tables.set_state(connection, member.id, PromptState.DROPPED)
            if known is not None:
                tables.set_state(connection, known, PromptState.SEED)
                return
            now = self._clock()
            tables.add(
                connection, language, seed, state=PromptState.SEED, parent=None, now_unix_s=now
            )

        await self._store.write(work)
        self._seeded.add(language)


def _population(
    connection: sa.Connection, language: Language
) -> tuple[tuple[PopulationMember, ...], Worths]:
    tallies = tables.tallies(connection, language)
    return tables.members(connection, language), guidance_choice.worths(tallies)


def _to_edit(
    connection: sa.Connection, *, language: Language, records: Sequence[PromptRecord]
) -> tuple[SectionsRow, tuple[str, ...]] | None:
    """Return the guidance to improve, and why earlier edits of it that did not pay were made."""
    members, known = _population(connection, language)
    counts = Counter(record.prompt for record in records)
    parent = guidance_choice.to_edit(members, known, counts, least=_RECORDS_FOR_AN_EDIT)
    row = None if parent is None else tables.find(connection, parent)
    if row is None:
        return None
    dropped = {m.id for m in members if m.state is PromptState.DROPPED}
    tried = [
        edit.reason
        for edit in tables.edits(connection, language, limit=tables.REMEMBERED_EDITS)
        if edit.parent == row.id and edit.child in dropped
    ]
    return row, tuple(tried[:_MAX_TRIED])


async def _edits(
    ask: Ask,
    messages: tuple[ChatMessage, ...],
    row: SectionsRow,
    records: Sequence[PromptRecord],
) -> _Answer:
    """Ask for edits; once more with the reason when they cannot be applied."""
    held_out = tuple({record.held_out for record in records})
    result = EditedSections(sections=None, failure="")
    for _ in range(_MAX_ATTEMPTS):
        try:
            reply = await ask(messages)
        except (LlmQuotaError, LlmUnavailableError, LlmConfigurationError) as error:
            return _Answer(sections=None, failure=error.message, is_answered=False)
        result = edited(row.sections, reply, held_out)
        if result.sections is not None:
            break
        messages = (*messages, *asked_again(reply, result.failure))
    return _Answer(sections=result.sections, failure=result.failure, diagnosis=result.diagnosis)
