"""An experience library without vectors: lessons are alike when they share words."""

import re
from dataclasses import replace

from kernel_foundry.domain.lesson import (
    AddedLesson,
    Lesson,
    LessonHit,
    LessonQuery,
    check_query,
    lesson_fault,
)
from kernel_foundry.errors import InvalidArgumentError

_DUPLICATE = 0.9
"""Share of common words from which two lessons are one."""


class FakeExperience:
    """Implements `kernel_foundry.ports.Experience`."""

    def __init__(self) -> None:
        self._lessons: dict[int, Lesson] = {}

    async def lessons(self, *, after: int = 0, limit: int = 100) -> tuple[Lesson, ...]:
        """Return up to `limit` lessons with an id above `after`, in order."""
        _require(after >= 0, "after")
        _require(limit >= 1, "limit")
        return tuple(lesson for i, lesson in self._lessons.items() if i > after)[:limit]

    async def search(self, query: LessonQuery, *, limit: int = 5) -> tuple[LessonHit, ...]:
        """Return lessons of the language and role, those with most common words first."""
        _require(limit >= 1, "limit")
        check_query(query)
        hits = []
        for lesson in self._lessons.values():
            if lesson.language not in (None, query.language):
                continue
            if query.expert and lesson.experts and query.expert not in lesson.experts:
                continue
            similarity = _common(_words(query.text, query.code), _words_of(lesson))
            kinds = set(query.findings) & set(lesson.findings)
            score = similarity + 0.1 * len(kinds)
            hits.append(LessonHit(lesson=lesson, similarity=similarity, score=score))
        return tuple(sorted(hits, key=lambda hit: (-hit.score, hit.lesson.id))[:limit])

    async def add(self, lesson: Lesson) -> AddedLesson:
        """Store a lesson, or return its near-duplicate."""
        fault = lesson_fault(lesson)
        if fault:
            raise InvalidArgumentError(f"lesson: {fault}", field="lesson")
        for known in self._lessons.values():
            is_same = known.language is lesson.language and known.findings == lesson.findings
            if is_same and _common(_words_of(known), _words_of(lesson)) >= _DUPLICATE:
                return AddedLesson(lesson=known, is_new=False)
        stored = replace(lesson, id=len(self._lessons) + 1)
        self._lessons[stored.id] = stored
        return AddedLesson(lesson=stored, is_new=True)

    async def close(self) -> None:
        """Do nothing: nothing is held."""


def _words_of(lesson: Lesson) -> set[str]:
    return _words(lesson.symptom, lesson.move, lesson.excerpt)


def _words(*texts: str) -> set[str]:
    return set(re.findall(r"\w+", " ".join(texts).lower()))


def _common(one: set[str], other: set[str]) -> float:
    return len(one & other) / max(len(one | other), 1)


def _require(is_fine: bool, field: str) -> None:
    if not is_fine:
        raise InvalidArgumentError(f"{field} is too small", field=field)
