"""The rows of evolving guidance: texts, credits, and every edit that was tried.

Each function works within its caller's transaction. `guidance_choice` chooses among the texts.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from generator_svc.meta_prompts.guidance_choice import PopulationMember, PromptState, Tally
from generator_svc.meta_prompts.sections import SECTION_NAMES, Sections
from generator_svc.store.schema import SECTION_CREDITS, SECTION_EDITS, SECTIONS
from kernel_foundry.domain.language import Language

REMEMBERED_CREDITS: Final = 1_000
"""Newest credits of a language that count; older ones are of earlier models and tasks."""

REMEMBERED_EDITS: Final = 100
"""Newest edits of a language that its editor may see."""

_MEMBERS: Final = (
    sa.select(SECTIONS.c.id, SECTIONS.c.parent, SECTIONS.c.state)
    .where(SECTIONS.c.language == sa.bindparam("of_language"))
    .order_by(SECTIONS.c.id)
)
_NEWEST: Final = (
    sa.select(
        SECTION_CREDITS.c.section,
        SECTION_CREDITS.c.run,
        SECTION_CREDITS.c.gain,
    )
    .where(SECTION_CREDITS.c.language == sa.bindparam("of_language"))
    .order_by(SECTION_CREDITS.c.id.desc())
    .limit(REMEMBERED_CREDITS)
    .subquery()
)
_TALLIES: Final = (
    sa.select(
        _NEWEST.c.section,
        _NEWEST.c.run,
        sa.func.count().label("credit_count"),
        sa.func.sum(_NEWEST.c.gain).label("gain_sum"),
        sa.func.sum(_NEWEST.c.gain * _NEWEST.c.gain).label("gain_square_sum"),
    )
    .group_by(_NEWEST.c.section, _NEWEST.c.run)
    .order_by(_NEWEST.c.section, _NEWEST.c.run)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionsRow:
    """One text of guidance, and the results of the proposals made with it."""

    id: int
    language: Language
    state: PromptState
    parent: int | None
    sections: Sections
    uses: int
    """Judged proposals made with it."""
    gain_sum: float
    outcomes: Mapping[str, int]
    """The same proposals by outcome."""
    created_unix_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Credit:
    """The gain of one proposal."""

    request_id: str
    """A credit with the id of an earlier one is not added again."""
    run: str
    gain: float
    outcome: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EditRow:
    """One request for better guidance, and its result."""

    run: str
    language: Language
    parent: int
    child: int | None
    """None: nothing was added."""
    result: str
    reason: str
    created_unix_s: float


def members(connection: sa.Connection, language: Language) -> tuple[PopulationMember, ...]:
    """Return a language's population, with its dropped members, oldest first."""
    rows = connection.execute(_MEMBERS, {"of_language": language.value})
    return tuple(
        PopulationMember(id=r.id, parent=r.parent, state=PromptState(r.state)) for r in rows
    )


def tallies(connection: sa.Connection, language: Language) -> tuple[Tally, ...]:
    """Return the sums of a language's newest credits."""
    return tuple(
        Tally(
            prompt=row.section,
            run=row.run,
            count=row.credit_count,
            gain_sum=row.gain_sum,
            gain_square_sum=row.gain_square_sum,
        )
        for row in connection.execute(_TALLIES, {"of_language": language.value})
    )


def find(connection: sa.Connection, section: int, *, is_locked: bool = False) -> SectionsRow | None:
    """Return one row, or None; nobody else can change a locked one until the transaction ends."""
    query = sa.select(SECTIONS).where(SECTIONS.c.id == section)
    row = connection.execute(query.with_for_update() if is_locked else query).first()
    return None if row is None else _row(row)


def listed(connection: sa.Connection, *, language: Language) -> tuple[SectionsRow, ...]:
    """Return every row of a language, oldest first."""
    rows = connection.execute(
        sa.select(SECTIONS).where(SECTIONS.c.language == language.value).order_by(SECTIONS.c.id)
    )
    return tuple(_row(row) for row in rows)


def add(
    connection: sa.Connection,
    language: Language,
    sections: Sections,
    *,
    state: PromptState,
    parent: int | None,
    now_unix_s: float,
) -> int | None:
    """Add a text and return its id; None if the language has had the same text before."""
    values: dict[str, Any] = {name: getattr(sections, name) for name in SECTION_NAMES}
    values |= {
        "language": language.value,
        "digest": sections.digest,
        "state": state.value,
        "parent": parent,
        "created_unix_s": now_unix_s,
    }
    try:
        with connection.begin_nested():
            key = connection.execute(SECTIONS.insert().values(values)).inserted_primary_key
    except sa.exc.IntegrityError:
        return None
    return int(key[0]) if key is not None else None


def with_digest(connection: sa.Connection, language: Language, digest: str) -> int | None:
    """Return the id of a text, or None."""
    found: int | None = connection.execute(
        sa.select(SECTIONS.c.id).where(
            SECTIONS.c.language == language.value, SECTIONS.c.digest == digest
        )
    ).scalar()
    return found


def set_state(connection: sa.Connection, section: int, state: PromptState) -> None:
    """Record the new state of a text."""
    connection.execute(SECTIONS.update().where(SECTIONS.c.id == section).values(state=state.value))


def add_credit(connection: sa.Connection, row: SectionsRow, credit: Credit) -> bool:
    """Credit a prompt; return False when the same request did so before."""
    asked = SECTION_CREDITS.c.request_id == credit.request_id
    if connection.execute(sa.select(SECTION_CREDITS.c.id).where(asked)).first() is not None:
        return False
    connection.execute(
        SECTION_CREDITS.insert(),
        {
            "request_id": credit.request_id,
            "section": row.id,
            "language": row.language.value,
            "run": credit.run,
            "gain": credit.gain,
        },
    )
    outcomes = Counter(row.outcomes)
    outcomes[credit.outcome] += 1
    connection.execute(
        SECTIONS.update()
        .where(SECTIONS.c.id == row.id)
        .values(
            uses=SECTIONS.c.uses + 1,
            gain_sum=SECTIONS.c.gain_sum + credit.gain,
            outcomes=json.dumps(outcomes, sort_keys=True),
        )
    )
    return True


def add_edit(connection: sa.Connection, edit: EditRow) -> None:
    """Record that a model was asked for better guidance."""
    newest = connection.execute(
        sa.select(sa.func.coalesce(sa.func.max(SECTION_CREDITS.c.id), 0)).where(
            SECTION_CREDITS.c.language == edit.language.value
        )
    ).scalar_one()
    connection.execute(
        SECTION_EDITS.insert(),
        {
            "run": edit.run,
            "language": edit.language.value,
            "parent": edit.parent,
            "child": edit.child,
            "result": edit.result,
            "reason": edit.reason,
            "last_credit": newest,
            "created_unix_s": edit.created_unix_s,
        },
    )


def edits(connection: sa.Connection, language: Language, *, limit: int) -> tuple[EditRow, ...]:
    """Return a language's newest edits, newest first."""
    rows = connection.execute(
        sa.select(SECTION_EDITS)
        .where(SECTION_EDITS.c.language == language.value)
        .order_by(SECTION_EDITS.c.id.desc())
        .limit(limit)
    )
    return tuple(
        EditRow(
            run=row.run,
            language=language,
            parent=row.parent,
            child=row.child,
            result=row.result,
            reason=row.reason,
            created_unix_s=row.created_unix_s,
        )
        for row in rows
    )


def credits_since_edit(connection: sa.Connection, language: Language) -> int:
    """Return how many credits a language has got since its newest edit."""
    newest = (
        sa.select(sa.func.coalesce(sa.func.max(SECTION_EDITS.c.last_credit), 0))
        .where(SECTION_EDITS.c.language == language.value)
        .scalar_subquery()
    )
    count: int = connection.execute(
        sa.select(sa.func.count()).where(
            SECTION_CREDITS.c.language == language.value, SECTION_CREDITS.c.id > newest
        )
    ).scalar_one()
    return count


def _row(row: Any) -> SectionsRow:
    return SectionsRow(
        id=row.id,
        language=Language(row.language),
        state=PromptState(row.state),
        parent=row.parent,
        sections=Sections(**{name: getattr(row, name) for name in SECTION_NAMES}),
        uses=row.uses,
        gain_sum=row.gain_sum,
        outcomes=json.loads(row.outcomes),
        created_unix_s=row.created_unix_s,
    )
