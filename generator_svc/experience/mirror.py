"""The lessons in memory, kept in step with the database, which is the truth.

Each look asks for the database's version and takes in what changed since the last one, whoever
changed it. The index's file saves embedding everything at every start; one that is damaged, of
another database, or made by another embedder is made anew.
"""

import asyncio
import logging
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from generator_svc.experience import keeping
from generator_svc.experience.embedding import Embedder, passage_of_lesson
from generator_svc.experience.index import IndexState, VectorIndex
from generator_svc.experience.seeds import seed_lessons, seeds_digest
from generator_svc.experience.shelf import Shelf
from generator_svc.store import lessons as rows
from generator_svc.store.lessons import LessonsState
from generator_svc.store.store import GeneratorStore
from kernel_foundry.domain.digest import content_digest
from kernel_foundry.domain.lesson import Lesson

_LOG: Final = logging.getLogger(__name__)

_WRITE_AFTER: Final = 64
"""Changed vectors after which the file is written; until then the next start makes them anew."""

_NOTHING: Final = LessonsState(store="", version=0, last_removal=0, seeds="")


class Mirror:
    """A shelf that shows what the database has. One task at a time may use it.

    Args:
        store: The database.
        embedder: Makes the vectors.
        index_file: Keeps them between starts; None: in memory only.
        seeds: Hand-written lessons by key; None: the package's.
    """

    def __init__(
        self,
        store: GeneratorStore,
        embedder: Embedder,
        *,
        index_file: Path | None,
        seeds: Mapping[str, Lesson] | None,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._index_file = index_file
        self._seeds = seeds
        self._shelf: Shelf | None = None
        self._shown = _NOTHING
        self._passages: dict[int, str] = {}
        """Digests of what the index's vectors were made of. A version would not do: a database
        that was set back comes to the same numbers again with other lessons."""
        self._unwritten = 0

    @property
    def version(self) -> int:
        """Version of the lessons that the shelf shows."""
        return self._shown.version

    async def current(self) -> Shelf:
        """Return the shelf, as the database is now.

        Raises:
            StoreUnavailableError, CorruptArchiveError: of the store.
            LlmConfigurationError, LlmQuotaError, LlmUnavailableError: of the embedder.
        """
        shelf = await self._open() if self._shelf is None else self._shelf
        now, changed, there = await self._store.read(partial(_difference, shown=self._shown))
        if _is_other(now, self._shown):
            self._shelf, self._shown = None, _NOTHING
            return await self.current()
        if now.version != self._shown.version:
            await self._take(shelf, changed, there)
            self._shown, self._shelf = now, shelf
            if self._unwritten >= _WRITE_AFTER:
                await self._write_index(shelf)
        return shelf

    async def close(self) -> None:
        """Write the index's file if it is behind."""
        if self._shelf is not None and self._unwritten:
            await self._write_index(self._shelf)

    async def _open(self) -> Shelf:
        """Take the hand-written lessons in, and load what the index's file has."""
        seeds = self._seeds
        if seeds is None:
            seeds = await asyncio.to_thread(seed_lessons)
        digest = seeds_digest(seeds)
        state = await self._store.read(rows.state)
        if state.seeds != digest:
            await self._store.write(partial(keeping.take_seeds, seeds=seeds, digest=digest))
        dimension = await self._embedder.dimension()
        index = await asyncio.to_thread(self._read_index, dimension, state)
        return Shelf(index, self._embedder.likeness)

    def _read_index(self, dimension: int, state: LessonsState) -> VectorIndex:
        """Return the file's index if it shows this database, otherwise an empty one."""
        self._passages = {}
        found = VectorIndex.read(self._index_file, dimension) if self._index_file else None
        if found is not None:
            index, shown = found
            is_ours = (shown.store, shown.embedder) == (state.store, self._embedder.name)
            is_told = len(shown.passages) == len(index)
            if is_ours and is_told and shown.version <= state.version:
                self._passages = dict(zip(index.ids().tolist(), shown.passages, strict=True))
                return index
        return VectorIndex(dimension)

    async def _take(
        self, shelf: Shelf, changed: tuple[Lesson, ...], there: frozenset[int] | None
    ) -> None:
        """Take in what changed.

        Args:
            shelf: Of before.
            changed: Lessons that are new or differ.
            there: Ids of all lessons; None when none was removed.
        """
        indexed = frozenset(shelf.index.ids().tolist())
        if there is not None:
            shelf.remove([*(indexed | shelf.ids()) - there])
        digests = {lesson.id: _digest(lesson) for lesson in changed}
        stale = [
            lesson
            for lesson in changed
            if lesson.id not in indexed or self._passages.get(lesson.id) != digests[lesson.id]
        ]
        vectors = await self._embedder.embed([passage_of_lesson(lesson) for lesson in stale])
        shelf.index.put([lesson.id for lesson in stale], vectors)
        shelf.put(changed)
        self._passages |= {lesson.id: digests[lesson.id] for lesson in stale}
        self._unwritten += len(stale)

    async def _write_index(self, shelf: Shelf) -> None:
        if self._index_file is None:
            return
        state = IndexState(
            store=self._shown.store,
            version=self._shown.version,
            embedder=self._embedder.name,
            passages=tuple(self._passages[lesson_id] for lesson_id in shelf.index.ids().tolist()),
        )
        try:
            await asyncio.to_thread(shelf.index.write, self._index_file, state)
        except OSError as error:
            # Nothing is lost: the database has the lessons, and the next start embeds them.
            _LOG.warning("cannot write the index %s: %s", self._index_file, error)
        self._unwritten = 0


def _is_other(now: LessonsState, shown: LessonsState) -> bool:
    """Return whether the database was replaced, as by a backup: then nothing shown holds."""
    return shown != _NOTHING and (now.store != shown.store or now.version < shown.version)


def _digest(lesson: Lesson) -> str:
    """Return what changes when a lesson's vector does."""
    passage = passage_of_lesson(lesson)
    return content_digest(passage.text, passage.code, *passage.findings)[:16]


def _difference(
    connection: sa.Connection, shown: LessonsState
) -> tuple[LessonsState, tuple[Lesson, ...], frozenset[int] | None]:
    """Return where the lessons stand, what changed since, and all ids if some are gone."""
    now = rows.state(connection)
    if now.version == shown.version:
        return now, (), None
    is_first = shown.version == 0
    there = rows.ids(connection) if is_first or now.last_removal > shown.version else None
    return now, rows.changed(connection, shown.version), there
