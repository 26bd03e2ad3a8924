"""The library's writes, each one transaction on the lessons' tables.

What becomes of a lesson's words and numbers is decided in `merging`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import sqlalchemy as sa

from generator_svc.experience import tables
from generator_svc.experience.merging import bounded_effect, credited, merged, says_the_same, worst
from kernel_foundry.domain.lesson import AddedLesson, Lesson, LessonOrigin

_DROPPED_DIVISOR: Final = 20
"""Of the learnt lessons allowed one in so many is dropped at once: other processes then have to
read all lessons again, so that should be seldom."""


def keep(
    connection: sa.Connection,
    *,
    lesson: Lesson,
    alike: Sequence[int],
    version: int,
    request_id: str,
    most_learnt: int,
) -> AddedLesson | None:
    """Add a lesson, or merge it into the one that says the same.

    None when the lessons changed since `version`: then others may be alike.

    Args:
        connection: Of the transaction.
        lesson: The new one.
        alike: Ids of lessons whose vectors are near its own, the nearest first.
        version: Of the lessons among which these were found.
        request_id: The same counts once: a second time a lesson that is there stays as it is.
        most_learnt: Learnt lessons beyond which the worst are dropped.
    """
    if tables.hold(connection).version != version:
        return None
    near = {known.id: known for known in tables.of_ids(connection, alike)}
    duplicate = next((near[i] for i in alike if says_the_same(near[i], lesson)), None)
    is_first = tables.count_once(connection, request_id)
    # One with the very same numbers comes from here: an own export that is read back.
    is_own = duplicate is not None and replace(duplicate, id=0) == lesson
    lesson = replace(lesson, effect=bounded_effect(lesson.effect))
    if lesson.origin is LessonOrigin.SEED:  # of another version of the package, by an import
        lesson = replace(lesson, origin=LessonOrigin.USER)
    if duplicate is None:
        revision = tables.advance(connection)
        lesson_id = tables.insert(connection, lesson, revision=revision)
        if lesson.origin is LessonOrigin.LEARNT:
            _drop_worst(connection, most_learnt, but=lesson_id, revision=revision)
        return AddedLesson(lesson=replace(lesson, id=lesson_id), is_new=True)
    both = merged(duplicate, lesson) if is_first and not is_own else duplicate
    if both != duplicate:
        tables.update(connection, both, revision=tables.advance(connection))
    return AddedLesson(lesson=both, is_new=False)


def credit(
    connection: sa.Connection,
    *,
    lesson_ids: tuple[int, ...],
    log_speedup: float | None,
    request_id: str,
) -> None:
    """Credit lessons with a proposal that showed them, once for each request_id."""
    tables.hold(connection)
    if not tables.count_once(connection, request_id):
        return
    found = tables.of_ids(connection, lesson_ids)
    if found:
        revision = tables.advance(connection)
        for lesson in found:
            tables.update(connection, credited(lesson, log_speedup), revision=revision)


def take_seeds(connection: sa.Connection, *, seeds: Mapping[str, Lesson], digest: str) -> None:
    """Bring the hand-written lessons up to date; their numbers stay.

    One whose text changed keeps its id. One that is no longer among them is withdrawn.
    """
    if tables.hold(connection).seeds == digest:
        return  # another process was faster
    revision = tables.advance(connection)
    known = tables.of_keys(connection)
    new = {key: seed for key, seed in seeds.items() if key not in known}
    tables.insert_of_keys(connection, new, revision=revision)
    for key, old in known.items():
        if key not in seeds:
            continue
        seed = seeds[key]
        renewed = seed if old.use_count == 0 else _with_numbers(seed, old)
        if replace(renewed, id=old.id) != old:
            tables.update(connection, replace(renewed, id=old.id), revision=revision)
    withdrawn = [lesson.id for key, lesson in known.items() if key not in seeds]
    tables.remove(connection, withdrawn, revision=revision)
    tables.note_seeds(connection, digest)


def _with_numbers(seed: Lesson, old: Lesson) -> Lesson:
    return replace(
        seed, effect=old.effect, use_count=old.use_count, failure_count=old.failure_count
    )


def _drop_worst(connection: sa.Connection, most: int, *, but: int, revision: int) -> None:
    if tables.count_of_origin(connection, LessonOrigin.LEARNT) <= most:
        return
    learnt = [x for x in tables.of_origin(connection, LessonOrigin.LEARNT) if x.id != but]
    unwanted = worst(learnt, max(1, most // _DROPPED_DIVISOR))
    tables.remove(connection, unwanted, revision=revision)
