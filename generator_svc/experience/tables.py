"""Lessons in the database: rows by id, and the version that tells when another process wrote.

Every function is part of the caller's transaction. Lessons are found in `index.py`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from generator_svc.store.schema import LESSON_CREDITS, LESSON_META, LESSON_VECTORS, LESSONS
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.lesson import Lesson, LessonOrigin
from kernel_foundry.domain.measures import Measures

_ID_LENGTH: Final = 300
_AT_ONCE: Final = 500
"""Values of one statement: SQLite has a limit."""

_STATE: Final = sa.select(
    LESSON_META.c.store, LESSON_META.c.version, LESSON_META.c.last_removal, LESSON_META.c.seeds
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonsState:
    """Where the lessons of a database stand."""

    store: str
    """Name that the database gave itself."""
    version: int
    """Rises with every change."""
    last_removal: int
    """Version at which a lesson was removed last."""
    seeds: str
    """Digest of the hand-written lessons as they were taken in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonChanges:
    """The changes of the lessons since an earlier state."""

    state: LessonsState
    changed: tuple[Lesson, ...]
    """New, or not what they were."""
    left: frozenset[int] | None
    """Ids of all lessons; None when none was removed."""


def state(connection: sa.Connection) -> LessonsState:
    """Return where the lessons stand."""
    return LessonsState(**connection.execute(_STATE).one()._mapping)


def changes(connection: sa.Connection, since: LessonsState) -> LessonChanges:
    """Return the changes since a state of the same database."""
    now = state(connection)
    if now.version == since.version:
        return LessonChanges(state=now, changed=(), left=None)
    left = ids(connection) if now.last_removal > since.version else None
    return LessonChanges(state=now, changed=changed(connection, since.version), left=left)


def hold(connection: sa.Connection) -> LessonsState:
    """Return where the lessons stand, and let other writers wait for the transaction's end."""
    connection.execute(LESSON_META.update().values(version=LESSON_META.c.version))
    return state(connection)


def advance(connection: sa.Connection) -> int:
    """Raise the version and return it."""
    connection.execute(LESSON_META.update().values(version=LESSON_META.c.version + 1))
    return state(connection).version


def note_seeds(connection: sa.Connection, digest: str) -> None:
    """Note which hand-written lessons were taken in."""
    connection.execute(LESSON_META.update().values(seeds=digest))


def count_once(connection: sa.Connection, request_id: str) -> bool:
    """Return False when `request_id` was counted before; otherwise it is from now on.

    To be called behind `hold`: two that count the same at once would collide.
    """
    is_known = sa.select(LESSON_CREDITS).where(LESSON_CREDITS.c.request_id == request_id)
    if len(request_id) > _ID_LENGTH:
        raise ValueError(f"a request id of {len(request_id)} characters, at most {_ID_LENGTH}")
    if connection.execute(is_known).first():
        return False
    connection.execute(LESSON_CREDITS.insert().values(request_id=request_id))
    return True


def page(connection: sa.Connection, after: int, limit: int) -> tuple[Lesson, ...]:
    """Return up to `limit` lessons with an id above `after`, in order."""
    found = sa.select(LESSONS).where(LESSONS.c.id > after).order_by(LESSONS.c.id).limit(limit)
    return tuple(_lesson(row) for row in connection.execute(found))


def changed(connection: sa.Connection, since: int) -> tuple[Lesson, ...]:
    """Return the lessons that changed behind version `since`, in no order.

    In an order, SQLite would walk through all lessons rather than through the few that changed.
    """
    found = sa.select(LESSONS).where(LESSONS.c.revision > since)
    return tuple(_lesson(row) for row in connection.execute(found))


def ids(connection: sa.Connection) -> frozenset[int]:
    """Return the ids of all lessons."""
    return frozenset(connection.execute(sa.select(LESSONS.c.id)).scalars())


def of_ids(connection: sa.Connection, wanted: Iterable[int]) -> tuple[Lesson, ...]:
    """Return the lessons of `wanted` that are still there, by id."""
    found = sa.select(LESSONS).where(LESSONS.c.id.in_(tuple(wanted))).order_by(LESSONS.c.id)
    return tuple(_lesson(row) for row in connection.execute(found))


def of_ids_at(
    connection: sa.Connection, wanted: Iterable[int], expected: LessonsState
) -> Mapping[int, Lesson] | None:
    """Return the lessons of `wanted` by id; None when the lessons are not in `expected` state."""
    if state(connection) != expected:
        return None
    return {lesson.id: lesson for lesson in of_ids(connection, wanted)}


def of_keys(connection: sa.Connection) -> Mapping[str, Lesson]:
    """Return the hand-written lessons by key."""
    rows = connection.execute(sa.select(LESSONS).where(LESSONS.c.key.is_not(None)))
    return {row.key: _lesson(row) for row in rows}


def insert(connection: sa.Connection, lesson: Lesson, *, revision: int) -> int:
    """Add a lesson and return its id."""
    values = {**_values(lesson), "revision": revision}
    added = connection.execute(LESSONS.insert().values(values)).inserted_primary_key
    assert added is not None  # a primary key that the database gives is always told
    return int(added[0])


def insert_of_keys(
    connection: sa.Connection, lessons: Mapping[str, Lesson], *, revision: int
) -> None:
    """Add hand-written lessons, by key."""
    rows = [{**_values(one), "revision": revision, "key": key} for key, one in lessons.items()]
    if rows:
        connection.execute(LESSONS.insert(), rows)


def update(connection: sa.Connection, lesson: Lesson, *, revision: int) -> None:
    """Replace the lesson of the same id."""
    values = {**_values(lesson), "revision": revision}
    connection.execute(LESSONS.update().where(LESSONS.c.id == lesson.id).values(values))


def remove(connection: sa.Connection, unwanted: Sequence[int], *, revision: int) -> None:
    """Remove lessons."""
    for start in range(0, len(unwanted), _AT_ONCE):
        some = unwanted[start : start + _AT_ONCE]
        connection.execute(LESSONS.delete().where(LESSONS.c.id.in_(some)))
    if unwanted:
        connection.execute(LESSON_META.update().values(last_removal=revision))


def of_origin(connection: sa.Connection, origin: LessonOrigin) -> tuple[Lesson, ...]:
    """Return the lessons of one origin, by id."""
    found = sa.select(LESSONS).where(LESSONS.c.origin == origin.value).order_by(LESSONS.c.id)
    return tuple(_lesson(row) for row in connection.execute(found))


def count_of_origin(connection: sa.Connection, origin: LessonOrigin) -> int:
    """Return how many lessons of one origin there are."""
    found = sa.select(sa.func.count()).where(LESSONS.c.origin == origin.value)
    return int(connection.execute(found).scalar_one())


def vectors(
    connection: sa.Connection, embedder: str, passages: Sequence[str]
) -> Mapping[str, bytes]:
    """Return the kept vectors of those of `passages`, named by digest, that have one."""
    kept: dict[str, bytes] = {}
    for start in range(0, len(passages), _AT_ONCE):
        found = sa.select(LESSON_VECTORS.c.passage, LESSON_VECTORS.c.vector).where(
            LESSON_VECTORS.c.embedder == embedder,
            LESSON_VECTORS.c.passage.in_(passages[start : start + _AT_ONCE]),
        )
        kept |= {row.passage: row.vector for row in connection.execute(found)}
    return kept


def keep_vectors(connection: sa.Connection, embedder: str, new: Mapping[str, bytes]) -> None:
    """Keep vectors by digest of their passage; another process may have been faster."""
    hold(connection)
    known = vectors(connection, embedder, tuple(new))
    rows = [
        {"embedder": embedder, "passage": passage, "vector": vector}
        for passage, vector in new.items()
        if passage not in known
    ]
    if rows:
        connection.execute(LESSON_VECTORS.insert(), rows)


def _values(lesson: Lesson) -> dict[str, Any]:
    return {
        "language": lesson.language.value if lesson.language else None,
        "origin": lesson.origin.value,
        "findings": json.dumps(lesson.findings),
        "experts": json.dumps(lesson.experts),
        "device": lesson.device,
        "before": json.dumps(lesson.before.cell) if lesson.before else None,
        "after": json.dumps(lesson.after.cell) if lesson.after else None,
        "symptom": lesson.symptom,
        "move": lesson.move,
        "excerpt": lesson.excerpt,
        "source": lesson.source,
        "effect": lesson.effect,
        "use_count": lesson.use_count,
        "failure_count": lesson.failure_count,
    }


def _lesson(row: Any) -> Lesson:
    return Lesson(
        symptom=row.symptom,
        move=row.move,
        language=Language(row.language) if row.language else None,
        findings=tuple(FindingKind(kind) for kind in json.loads(row.findings)),
        experts=tuple(json.loads(row.experts)),
        device=row.device,
        before=_measures(row.before),
        after=_measures(row.after),
        excerpt=row.excerpt,
        source=row.source,
        origin=LessonOrigin(row.origin),
        effect=row.effect,
        use_count=row.use_count,
        failure_count=row.failure_count,
        id=row.id,
    )


def _measures(text: str | None) -> Measures | None:
    if text is None:
        return None
    memory, algorithm, synchronization = json.loads(text)
    return Measures(memory=memory, algorithm=algorithm, synchronization=synchronization)
