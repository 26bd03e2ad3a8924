"""The lessons in memory, with their index: searched without a look at the database.

Belongs to one event loop. Knows nothing of how lessons are stored and embedded.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from generator_svc.experience import ranking
from generator_svc.experience.columns import LessonColumns
from generator_svc.experience.concepts import identifiers
from generator_svc.experience.embedding import Likeness, Vectors
from generator_svc.experience.index import VectorIndex
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.lesson import Lesson, LessonHit, LessonOrigin, LessonQuery
from kernel_foundry.plan.source_text import strip_comments

_CANDIDATES: Final = 512
"""Nearest lessons that are ranked: matches and worth lift none from farther down."""
_LIKELY_DUPLICATES: Final = 64


class Shelf:
    """Lessons and the vectors that they are found by.

    Args:
        index: May hold vectors of lessons that are put later, and of none.
        likeness: Of the embedder whose vectors these are.
    """

    def __init__(self, index: VectorIndex, likeness: Likeness) -> None:
        self.index: Final = index
        self._likeness = likeness
        self._lessons: dict[int, Lesson] = {}
        self._columns = LessonColumns()
        self._selectors: dict[tuple[Language, str], tuple[Any, int]] = {}

    def __len__(self) -> int:
        return len(self._lessons)

    def ids(self) -> frozenset[int]:
        """Return the ids of all lessons."""
        return frozenset(self._lessons)

    def put(self, lessons: Iterable[Lesson]) -> None:
        """Add lessons, or replace those of the same ids."""
        for lesson in lessons:
            known = self._lessons.get(lesson.id)
            if known is None or _suits(known) != _suits(lesson):
                self._selectors.clear()
            self._lessons[lesson.id] = lesson
            self._columns.put(lesson)

    def remove(self, unwanted: Sequence[int]) -> None:
        """Forget lessons, and vectors that have none."""
        known = [lesson_id for lesson_id in unwanted if lesson_id in self._lessons]
        for lesson_id in known:
            del self._lessons[lesson_id]
        self._columns.remove(known)
        self.index.remove(unwanted)
        self._selectors.clear()

    def search(self, vector: Vectors, query: LessonQuery, limit: int) -> tuple[LessonHit, ...]:
        """Return up to `limit` lessons for the query that `vector` stands for, best first."""
        selector, count = self._suitable(query.language, query.expert)
        ids, cosines = self.index.search(vector, min(count, max(_CANDIDATES, limit)), selector)
        if not len(ids):
            return ()
        scores = ranking.scores(self._columns, self._columns.rows(ids), cosines, query)
        order = np.lexsort((ids, -scores))  # of equal ones the older first, always
        hits: list[LessonHit] = []
        taken = np.zeros((0, self.index.dimension), dtype=np.float32)
        for position in order:
            if len(hits) == limit:
                break
            own = self.index.vectors(ids[position : position + 1])
            if len(taken) and float((taken @ own[0]).max()) > self._likeness.alike:
                continue
            taken = np.concatenate([taken, own])
            hits.append(
                LessonHit(
                    lesson=self._lessons[int(ids[position])],
                    similarity=float(np.clip(cosines[position], -1.0, 1.0)),
                    score=float(scores[position]),
                )
            )
        return tuple(hits)

    def duplicate_of(self, lesson: Lesson, vector: Vectors) -> Lesson | None:
        """Return the lesson that says the same: alike, of the same language, for the same kinds.

        Vectors are blind to operators and numbers. Where these are all that two repairs differ
        by, they are the repair, and both stay.
        """
        ids, cosines = self.index.search(vector, _LIKELY_DUPLICATES)
        for lesson_id, cosine in zip(ids, cosines, strict=True):
            known = self._lessons[int(lesson_id)]
            answers_same = set(known.findings) & set(lesson.findings) or (
                not known.findings and not lesson.findings
            )
            is_alike = cosine >= self._likeness.duplicate and known.language is lesson.language
            if is_alike and answers_same and not _mend_otherwise(known, lesson):
                return known
        return None

    def _suitable(self, language: Language, expert: str) -> tuple[Any, int]:
        key = (language, expert)
        if key not in self._selectors:
            ids = self._columns.suitable(language, expert)
            self._selectors[key] = (self.index.selector(ids), len(ids))
        return self._selectors[key]


def _mend_otherwise(one: Lesson, other: Lesson) -> bool:
    """Return whether two learnt repairs have code of the same names that is not the same."""
    repairs = [x for x in (one, other) if x.origin is LessonOrigin.LEARNT and x.after is None]
    if len(repairs) < 2:
        return False
    codes = [strip_comments(lesson.excerpt).split() for lesson in repairs]
    names = [identifiers(" ".join(code)) for code in codes]
    return codes[0] != codes[1] and names[0] == names[1]


def _suits(lesson: Lesson) -> tuple[object, ...]:
    return lesson.language, lesson.experts
