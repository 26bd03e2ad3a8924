"""The index's file: whole or absent, and made anew when it and the database differ."""

import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from generator_svc.experience.embedding import HashedEmbedder, Passage, Vectors
from generator_svc.experience.index import IndexState, VectorIndex
from generator_svc.experience.library import ExperienceLibrary
from generator_svc.store.store import GeneratorStore
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.lesson import LessonQuery
from tests.experience.conftest import lesson

QUERY = LessonQuery(language=Language.CUDA, findings=(FindingKind.BANK_CONFLICT,), text="banks")
STATE = IndexState(store="a", version=3, embedder="e")


class CountingEmbedder(HashedEmbedder):
    """Counts the passages that it is asked for."""

    def __init__(self, name: str = "counting") -> None:
        super().__init__()
        self._name = name
        self.count = 0

    async def embed(self, passages: Any, *, is_kept: bool = True) -> Vectors:
        """Count, and embed."""
        self.count += len(passages) if is_kept else 0
        return await super().embed(passages, is_kept=is_kept)


def _index(count: int) -> VectorIndex:
    index = VectorIndex(8)
    vectors = np.eye(8, dtype=np.float32)[:count]
    index.put(list(range(1, count + 1)), vectors)
    return index


def test_an_index_is_read_as_it_was_written(tmp_path: Path) -> None:
    """With the state that it shows."""
    path = tmp_path / "folder" / "x.faiss"
    _index(5).write(path, STATE)
    read = VectorIndex.read(path, 8)
    assert read is not None
    index, state = read
    assert (len(index), state) == (5, STATE)
    ids, cosines = index.search(np.eye(8, dtype=np.float32)[2], 1)
    assert (ids.tolist(), cosines.tolist()) == ([3], [1.0])
    assert [entry.name for entry in path.parent.iterdir()] == ["x.faiss"]


@pytest.mark.parametrize("damage", ["absent", "empty", "cut", "flipped", "text", "dimension"])
def test_a_damaged_file_is_no_index(tmp_path: Path, damage: str) -> None:
    """Whatever is wrong with it, nothing of it is used."""
    path = tmp_path / "x.faiss"
    _index(5).write(path, STATE)
    content = bytearray(path.read_bytes())
    if damage == "absent":
        path.unlink()
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "cut":
        path.write_bytes(content[:-7])
    elif damage == "flipped":
        content[-20] ^= 0xFF
        path.write_bytes(content)
    elif damage == "text":
        path.write_text("no index\nat all\n")
    assert VectorIndex.read(path, 9 if damage == "dimension" else 8) is None


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    """Readers never see half of an index."""
    path = tmp_path / "x.faiss"
    _index(5).write(path, STATE)
    old = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, limits[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            _index(3).write(path, STATE)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.faiss"]
    assert path.read_bytes() == old


class TestLibrary:
    """The library and its file."""

    @pytest.fixture
    async def filled(self, tmp_path: Path) -> Path:
        """Return a folder with a store and an index of three lessons."""
        library, _ = self.open(tmp_path)
        for word in ("banks", "lanes", "warps"):
            await library.add(lesson(symptom=f"About {word}.", move=f"Mind the {word}, {word}."))
        await library.close()
        return tmp_path

    @staticmethod
    def open(folder: Path, name: str = "counting") -> tuple[ExperienceLibrary, CountingEmbedder]:
        """Return a library on the folder's store, and its embedder."""
        embedder = CountingEmbedder(name)
        store = GeneratorStore(f"sqlite:///{folder / 'generator.db'}")
        library = ExperienceLibrary(
            store,
            embedder=embedder,
            index_file=folder / "x.faiss",
            seeds={},
            owns_store=True,
        )
        return library, embedder

    async def _search(self, folder: Path, name: str = "counting") -> tuple[int, int]:
        """Return how many lessons are found, and how many were embedded for that."""
        library, embedder = self.open(folder, name)
        hits = await library.search(QUERY, limit=9)
        await library.close()
        return len(hits), embedder.count

    async def test_a_start_embeds_nothing_that_the_file_has(self, filled: Path) -> None:
        """All three come from the file."""
        assert await self._search(filled) == (3, 0)

    async def test_a_damaged_file_is_made_anew(self, filled: Path) -> None:
        """Once: the next start reads it."""
        (filled / "x.faiss").write_bytes(b"damaged")
        assert await self._search(filled) == (3, 3)
        assert await self._search(filled) == (3, 0)

    async def test_a_file_that_is_behind_catches_up(self, filled: Path) -> None:
        """Only what changed since is embedded."""
        old = (filled / "x.faiss").read_bytes()
        library, _ = self.open(filled)
        await library.add(lesson(symptom="About tiles.", move="Mind the tiles, tiles."))
        await library.close()
        (filled / "x.faiss").write_bytes(old)
        assert await self._search(filled) == (4, 1)

    async def test_a_file_of_another_store_is_made_anew(self, filled: Path) -> None:
        """Its ids mean other lessons, whatever its version."""
        _set_database(filled, {})
        library, embedder = self.open(filled)
        await library.add(lesson(symptom="About tiles.", move="Mind the tiles, tiles."))
        hits = await library.search(QUERY, limit=9)
        await library.close()
        assert [hit.lesson.symptom for hit in hits] == ["About tiles."]
        assert embedder.count == 2  # when it was added, and when it was put on the shelf

    async def test_a_store_that_was_set_back_is_followed(self, filled: Path) -> None:
        """A backup of before the last lesson: what it does not have is not found."""
        backup = _database(filled)
        library, _ = self.open(filled)
        await library.add(lesson(symptom="About tiles.", move="Mind the tiles, tiles."))
        await library.close()
        _set_database(filled, backup)
        assert await self._search(filled) == (3, 3)

    async def test_a_store_that_was_set_back_and_went_on_is_followed(self, filled: Path) -> None:
        """It comes to the index's version again, where the same id is another lesson."""
        backup = _database(filled)
        await self._add_on(filled, "tiles", index="x.faiss")
        _set_database(filled, backup)
        for word in ("ropes", "knots"):
            await self._add_on(filled, word, index="another.faiss")
        library, embedder = self.open(filled)
        (first, *_) = await library.search(
            LessonQuery(language=Language.CUDA, text="About ropes. Mind the ropes, ropes.")
        )
        await library.close()
        assert first.lesson.symptom == "About ropes."
        assert embedder.count == 2

    async def _add_on(self, folder: Path, word: str, *, index: str) -> None:
        store = GeneratorStore(f"sqlite:///{folder / 'generator.db'}")
        library = ExperienceLibrary(
            store,
            embedder=CountingEmbedder(),
            index_file=folder / index,
            seeds={},
            owns_store=True,
        )
        await library.add(lesson(symptom=f"About {word}.", move=f"Mind the {word}, {word}."))
        await library.close()

    async def test_a_store_that_is_set_back_meanwhile_is_followed(self, filled: Path) -> None:
        """A library that is open forgets what the backup does not have."""
        library, _ = self.open(filled)
        assert len(await library.search(QUERY, limit=9)) == 3
        extra = await library.add(lesson(symptom="About tiles.", move="Mind the tiles, tiles."))
        store = library._store  # a database replaced under an open connection is another matter
        await store.write(lambda c: _set_back(c, extra.lesson.id))
        assert len(await library.search(QUERY, limit=9)) == 3
        await library.close()

    async def test_another_embedder_makes_it_anew(self, filled: Path) -> None:
        """Vectors of two embedders are never compared."""
        assert await self._search(filled, "another") == (3, 3)
        assert await self._search(filled, "another") == (3, 0)

    async def test_an_index_that_cannot_be_written_costs_nothing_but_time(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The lessons are in the database; the log says what is wrong."""
        (tmp_path / "x.faiss").mkdir()
        library, _ = self.open(tmp_path)
        await library.add(lesson())
        await library.close()
        assert "x.faiss" in caplog.text
        assert (await self._search(tmp_path))[0] == 1


async def test_a_hashed_embedding_is_the_same_in_every_process() -> None:
    """Known values: no seed of the interpreter's hashes comes in."""
    passage = Passage(text="Bank conflicts.", code="", findings=(FindingKind.BANK_CONFLICT,))
    (vector,) = await HashedEmbedder().embed([passage])
    (again,) = HashedEmbedder().embed_now([passage])
    np.testing.assert_array_equal(vector, again)


def _database(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.glob("generator.db*")}


def _set_database(folder: Path, files: dict[str, bytes]) -> None:
    for file in folder.glob("generator.db*"):
        file.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)


def _set_back(connection: sa.Connection, lesson_id: int) -> None:
    connection.execute(sa.text("DELETE FROM lessons WHERE id = :id"), {"id": lesson_id})
    connection.execute(sa.text("UPDATE lesson_meta SET version = version - 1"))
