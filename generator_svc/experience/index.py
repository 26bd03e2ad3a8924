"""The index of lessons: FAISS finds the nearest vectors, and numbers beside them rank the lessons.

It is built from the database at every start. `ranking` has the scores, `tables` the database.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from generator_svc.experience import ranking
from generator_svc.experience.columns import LessonColumns
from generator_svc.experience.embedding import Likeness, Vectors
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.lesson import Lesson, LessonQuery

_CANDIDATES: Final = 512
"""Nearest lessons that are ranked: match and worth cannot lift one from farther down."""
_LIKELY_DUPLICATES: Final = 64

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedLesson:
    """A lesson that was found."""

    id: int
    similarity: float
    """Cosine with the query."""
    score: float
    """The score by which it was ranked."""


class LessonIndex:
    """Vectors and numbers of lessons by id.

    Searches are exhaustive: exact, and fast enough for some ten thousands.

    Args:
        dimension: Length of a vector.
        likeness: The thresholds of the embedder that makes the vectors.
    """

    def __init__(self, dimension: int, likeness: Likeness) -> None:
        import faiss

        self._faiss: Any = faiss
        self._vectors: Any = faiss.IndexIDMap2(faiss.IndexFlatIP(dimension))
        self._columns = LessonColumns()
        self._dimension = dimension
        self._likeness = likeness
        self._suitable: dict[tuple[Language, str], tuple[int, Any]] = {}
        """By language and role: the number of suitable lessons, and FAISS's selector for them."""

    def __len__(self) -> int:
        return len(self._columns)

    def put(self, lessons: Iterable[Lesson]) -> None:
        """Add the numbers of lessons, or replace those of the same ids."""
        self._suitable.clear()
        for lesson in lessons:
            self._columns.put(lesson)

    def put_vectors(self, ids: Sequence[int], vectors: Vectors) -> None:
        """Add the vectors of lessons, or replace them: (lessons, dimension), of length 1 each."""
        if len(ids):
            wanted = np.asarray(ids, dtype=np.int64)
            self._vectors.remove_ids(wanted)
            self._vectors.add_with_ids(vectors, wanted)

    def remove(self, ids: Sequence[int]) -> None:
        """Remove lessons, which must be in the index."""
        self._suitable.clear()
        self._columns.remove(ids)
        if ids:
            self._vectors.remove_ids(np.asarray(ids, dtype=np.int64))

    def search(self, vector: Vectors, query: LessonQuery, limit: int) -> tuple[RankedLesson, ...]:
        """Return up to `limit` lessons for the query that `vector` stands for, best first."""
        count, selector = self._selector(query.language, query.expert)
        ids, cosines = self._nearest(vector, min(count, max(_CANDIDATES, limit)), selector)
        if not len(ids):
            return ()
        scores = ranking.scores(self._columns, self._columns.rows(ids), cosines, query)
        order = np.lexsort((ids, -scores))  # of equal ones the older first, always
        found: list[RankedLesson] = []
        shown = np.zeros((0, self._dimension), dtype=np.float32)
        for position in order:
            if len(found) == limit:
                break
            own = self._vectors.reconstruct_batch(ids[position : position + 1])
            if len(shown) and float((shown @ own[0]).max()) > self._likeness.alike:
                continue
            shown = np.concatenate([shown, own])
            found.append(
                RankedLesson(
                    id=int(ids[position]),
                    similarity=float(np.clip(cosines[position], -1.0, 1.0)),
                    score=float(scores[position]),
                )
            )
        return tuple(found)

    def alike(self, vector: Vectors) -> tuple[int, ...]:
        """Return the ids of lessons that may say the same as the one with `vector`."""
        ids, cosines = self._nearest(vector, _LIKELY_DUPLICATES)
        return tuple(ids[cosines >= self._likeness.duplicate].tolist())

    def _selector(self, language: Language, expert: str) -> tuple[int, Any]:
        key = (language, expert)
        if key not in self._suitable:
            ids = self._columns.suitable(language, expert)
            self._suitable[key] = len(ids), self._faiss.IDSelectorBatch(ids)
        return self._suitable[key]

    def _nearest(self, vector: Vectors, count: int, among: Any = None) -> tuple[Ids, Vectors]:
        """Return (ids, cosines) of up to `count` nearest, best first; `among` None: of all."""
        wanted = min(count, len(self))
        if wanted == 0:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32)
        options = self._faiss.SearchParameters(sel=among) if among is not None else None
        # For one query threads cost more than they gain. The setting belongs to the calling
        # thread, which may not be the thread that made the index.
        self._faiss.omp_set_num_threads(1)
        cosines, ids = self._vectors.search(vector[np.newaxis, :], wanted, params=options)
        is_there = ids[0] >= 0
        return ids[0][is_there], cosines[0][is_there]
