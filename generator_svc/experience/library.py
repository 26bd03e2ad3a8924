"""The experience library: lessons in the database, found by an index that follows it.

The database is the truth. Each call asks for its version and takes into the index what changed
since the last one, whoever changed it.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from generator_svc.experience import keeping, tables
from generator_svc.experience.embedding import (
    Embedder,
    HashedEmbedder,
    passage_of_lesson,
    passage_of_query,
)
from generator_svc.experience.index import LessonIndex
from generator_svc.experience.lesson_writer import write_lesson
from generator_svc.experience.seeds import seed_lessons, seeds_digest
from generator_svc.experience.tables import LessonChanges, LessonsState
from generator_svc.experience.transition import ObservedTransition
from generator_svc.experience.vectors import LessonVectors, passage_digest
from generator_svc.store.store import GeneratorStore
from kernel_foundry.domain.digest import content_digest
from kernel_foundry.domain.lesson import (
    AddedLesson,
    Lesson,
    LessonHit,
    LessonQuery,
    check_query,
    lesson_fault,
)
from kernel_foundry.domain.plain import to_json
from kernel_foundry.errors import InvalidArgumentError, LlmQuotaError, LlmUnavailableError

_LOG: Final = logging.getLogger(__name__)

MOST_LEARNT: Final = 5_000
"""Learnt lessons beyond which the worst are dropped; others are never dropped."""

_LEAST_RECALLED_SCORE: Final = 0.15
"""A hit of less has little to do with a proposal: a prompt is better without it."""

_NOTHING: Final = LessonsState(store="", version=0, last_removal=0, seeds="")


class ExperienceLibrary:
    """Implements `kernel_foundry.ports.Experience`, and what the generator needs beside it.

    Args:
        store: Where lessons are kept.
        embedder: Makes the vectors; None: the one that needs no model.
        seeds: Hand-written lessons by key; None: the package's.
        most_learnt: Learnt lessons beyond which the worst are dropped.
        owns_store: Whether `close` closes the store.
    """

    def __init__(
        self,
        store: GeneratorStore,
        *,
        embedder: Embedder | None = None,
        seeds: Mapping[str, Lesson] | None = None,
        most_learnt: int = MOST_LEARNT,
        owns_store: bool = False,
    ) -> None:
        self._store = store
        self._embedder = embedder or HashedEmbedder()
        self._vectors = LessonVectors(store, self._embedder)
        self._seeds = seeds
        self._most_learnt = most_learnt
        self._owns_store = owns_store
        self._lock = asyncio.Lock()
        """Held by the one task that uses the index."""
        self._index: LessonIndex | None = None
        self._indexed = _NOTHING
        """State of the lessons that the index shows."""
        self._passages: dict[int, str] = {}
        """By lesson: digest of what its vector was made of."""

    async def lessons(self, *, after: int = 0, limit: int = 100) -> tuple[Lesson, ...]:
        """See `Experience.lessons`."""
        if after < 0 or limit < 1:
            raise InvalidArgumentError(
                f"a page of {limit} lessons behind {after}: expected at least 1 behind at least 0",
                field="limit" if limit < 1 else "after",
            )
        async with self._lock:
            await self._synchronized()
        return await self._store.read(partial(tables.page, after=after, limit=limit))

    async def search(self, query: LessonQuery, *, limit: int = 5) -> tuple[LessonHit, ...]:
        """See `Experience.search`; raises as `Embedder.embed` too."""
        if limit < 1:
            raise InvalidArgumentError(f"a limit of {limit}: expected at least 1", field="limit")
        check_query(query)
        (vector,) = await self._embedder.embed([passage_of_query(query)])
        async with self._lock:
            index = self._index or await self._synchronized()
            while True:
                ranked = index.search(vector, query, limit)
                lessons = await self._store.read(
                    partial(
                        tables.of_ids_at,
                        wanted=[one.id for one in ranked],
                        expected=self._indexed,
                    )
                )
                if lessons is not None:
                    break
                index = await self._synchronized()
        return tuple(
            LessonHit(lesson=lessons[one.id], similarity=one.similarity, score=one.score)
            for one in ranked
        )

    async def add(self, lesson: Lesson) -> AddedLesson:
        """See `Experience.add`; raises as `Embedder.embed` too."""
        new = replace(lesson, id=0)
        return await self._keep(new, request_id=f"add {content_digest(to_json(new))}")

    async def recall(self, query: LessonQuery, *, limit: int = 4) -> tuple[Lesson, ...]:
        """Return lessons to show in a prompt, the most helpful first; none when none fits.

        A provider of embeddings that does not answer costs a proposal its lessons, not more.

        Raises:
            LlmConfigurationError: of the embedding model.
            StoreUnavailableError, CorruptArchiveError: of the store.
        """
        try:
            hits = await self.search(query, limit=limit)
        except (LlmUnavailableError, LlmQuotaError) as error:
            _LOG.warning("no lessons for a proposal: %s", error)
            return ()
        return tuple(
            hit.lesson
            for hit in hits
            if hit.score >= _LEAST_RECALLED_SCORE and not hit.lesson.is_empty
        )

    async def credit(
        self, lesson_ids: tuple[int, ...], *, log_speedup: float | None, request_id: str
    ) -> None:
        """Credit lessons with what became of a proposal that showed them.

        Args:
            lesson_ids: Those shown; one that was dropped since is left out.
            log_speedup: Of the child over its parent; None: it did not pass.
            request_id: Of the proposal: the same counts once.
        """
        if lesson_ids:
            await self._store.write(
                partial(
                    keeping.credit,
                    lesson_ids=lesson_ids,
                    log_speedup=log_speedup,
                    request_id=f"credit {request_id}",
                )
            )

    async def learn(self, transition: ObservedTransition) -> AddedLesson | None:
        """Write a lesson from a transition that says something; None for the others.

        Lessons that fail validation are discarded: their texts come from a client and go into
        prompts of other runs. The same child of a run teaches once. If the provider of embeddings
        does not answer, the lesson is lost.
        """
        lesson = write_lesson(transition)
        if lesson is None:
            return None
        request_id = f"learn {transition.run} {transition.child.digest}"
        try:
            return await self._keep(lesson, request_id=request_id)
        except (InvalidArgumentError, LlmUnavailableError, LlmQuotaError) as error:
            _LOG.warning("a lesson is lost: %s", error)
            return None

    async def close(self) -> None:
        """Close the embedder, and the store if it is the library's own."""
        await self._embedder.close()
        if self._owns_store:
            await self._store.close()

    async def _keep(self, lesson: Lesson, *, request_id: str) -> AddedLesson:
        fault = lesson_fault(lesson)
        if fault:
            raise InvalidArgumentError(f"lesson: {fault}", field="lesson")
        (vector,) = await self._vectors.of([passage_of_lesson(lesson)])
        async with self._lock:
            while True:
                index = await self._synchronized()
                added = await self._store.write(
                    partial(
                        keeping.keep,
                        lesson=lesson,
                        alike=index.alike(vector),
                        version=self._indexed.version,
                        request_id=request_id,
                        most_learnt=self._most_learnt,
                    )
                )
                if added is not None:
                    return added

    async def _synchronized(self) -> LessonIndex:
        """Return the index, as the database is now.

        Raises:
            StoreUnavailableError, CorruptArchiveError: of the store.
            LlmConfigurationError, LlmQuotaError, LlmUnavailableError: of the embedder.
        """
        index = await self._opened() if self._index is None else self._index
        changes = await self._store.read(partial(tables.changes, since=self._indexed))
        now, shown = changes.state, self._indexed
        if shown != _NOTHING and (now.store != shown.store or now.version < shown.version):
            # The database was replaced, as by a backup: nothing that the index shows holds.
            self._index, self._indexed, self._passages = None, _NOTHING, {}
            return await self._synchronized()
        if now.version != shown.version:
            await self._take(index, changes)
        self._index, self._indexed = index, now
        return index

    async def _opened(self) -> LessonIndex:
        """Take the hand-written lessons into the database; return an empty index."""
        seeds = self._seeds
        if seeds is None:
            seeds = await asyncio.to_thread(seed_lessons)
        digest = seeds_digest(seeds)
        if (await self._store.read(tables.state)).seeds != digest:
            await self._store.write(partial(keeping.take_seeds, seeds=seeds, digest=digest))
        return LessonIndex(await self._embedder.dimension(), self._embedder.likeness)

    async def _take(self, index: LessonIndex, changes: LessonChanges) -> None:
        """Take changes into the index; all of them, or, when the embedder fails, none."""
        passages = {lesson.id: passage_of_lesson(lesson) for lesson in changes.changed}
        digests = {lesson_id: passage_digest(passage) for lesson_id, passage in passages.items()}
        stale = [i for i, digest in digests.items() if self._passages.get(i) != digest]
        vectors = await self._vectors.of([passages[lesson_id] for lesson_id in stale])
        if changes.left is not None:
            gone = [lesson_id for lesson_id in self._passages if lesson_id not in changes.left]
            index.remove(gone)
            for lesson_id in gone:
                del self._passages[lesson_id]
        index.put(changes.changed)
        index.put_vectors(stale, vectors)
        self._passages |= digests
