"""The index follows the database, and a vector is made once."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from generator_svc.experience.embedding import HashedEmbedder, Passage, Vectors
from generator_svc.experience.library import ExperienceLibrary
from generator_svc.store.store import GeneratorStore
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.lesson import LessonQuery
from kernel_foundry.errors import LlmUnavailableError
from tests.experience.conftest import lesson

QUERY = LessonQuery(language=Language.CUDA, findings=(FindingKind.BANK_CONFLICT,), text="banks")


class CountingEmbedder(HashedEmbedder):
    """Counts the lessons that it is asked for: a query says nothing but `banks`."""

    def __init__(self, name: str = "counting") -> None:
        super().__init__()
        self._name = name
        self.count = 0
        self.is_away = False

    async def embed(self, passages: Sequence[Passage]) -> Vectors:
        if self.is_away:
            raise LlmUnavailableError("no answer", model=self._name)
        self.count += sum(passage.text != "banks" for passage in passages)
        return await super().embed(passages)


def opened(folder: Path, name: str = "counting") -> tuple[ExperienceLibrary, CountingEmbedder]:
    embedder = CountingEmbedder(name)
    store = GeneratorStore(f"sqlite:///{folder / 'generator.db'}")
    return ExperienceLibrary(store, embedder=embedder, seeds={}, owns_store=True), embedder


async def add(library: ExperienceLibrary, word: str) -> int:
    added = await library.add(lesson(symptom=f"About {word}.", move=f"Mind the {word}, {word}."))
    return added.lesson.id


async def found(library: ExperienceLibrary) -> list[str]:
    return sorted(hit.lesson.symptom for hit in await library.search(QUERY, limit=9))


@pytest.fixture
async def filled(tmp_path: Path) -> Path:
    """Return a folder with a store of two lessons."""
    library, embedder = opened(tmp_path)
    for word in ("banks", "lanes"):
        await add(library, word)
    assert len(await found(library)) == 2
    await library.close()
    assert embedder.count == 2
    return tmp_path


async def test_a_start_embeds_nothing_that_the_store_has(filled: Path) -> None:
    library, embedder = opened(filled)
    assert await found(library) == ["About banks.", "About lanes."]
    assert embedder.count == 0
    await add(library, "tiles")
    assert await found(library) == ["About banks.", "About lanes.", "About tiles."]
    assert embedder.count == 1
    await library.close()


async def test_vectors_of_two_embedders_are_never_compared(filled: Path) -> None:
    for name, count in (("another", 2), ("another", 0), ("counting", 0)):
        library, embedder = opened(filled, name)
        assert await found(library) == ["About banks.", "About lanes."]
        await library.close()
        assert embedder.count == count


async def test_what_another_process_removes_is_not_found(filled: Path) -> None:
    library, _ = opened(filled)
    assert len(await found(library)) == 2
    engine = sa.create_engine(f"sqlite:///{filled / 'generator.db'}")
    with engine.begin() as connection:
        connection.execute(sa.text("DELETE FROM lessons WHERE symptom = 'About banks.'"))
        connection.execute(
            sa.text("UPDATE lesson_meta SET version = version + 1, last_removal = version + 1")
        )
    engine.dispose()
    assert await found(library) == ["About lanes."]
    await add(library, "banks")
    assert await found(library) == ["About banks.", "About lanes."]
    await library.close()


async def test_a_store_that_is_set_back_is_followed(filled: Path) -> None:
    """A library that is open forgets what the backup does not have."""
    library, _ = opened(filled)
    extra = await add(library, "tiles")
    assert len(await found(library)) == 3
    engine = sa.create_engine(f"sqlite:///{filled / 'generator.db'}")
    with engine.begin() as connection:
        connection.execute(sa.text("DELETE FROM lessons WHERE id = :id"), {"id": extra})
        connection.execute(sa.text("UPDATE lesson_meta SET version = version - 1"))
    engine.dispose()
    assert await found(library) == ["About banks.", "About lanes."]
    await library.close()


async def test_an_embedder_that_fails_leaves_the_index_as_it_was(filled: Path) -> None:
    """What changed is taken in once it answers again."""
    library, embedder = opened(filled)
    assert len(await found(library)) == 2
    other, _ = opened(filled, "another")
    await add(other, "tiles")
    await other.close()
    embedder.is_away = True
    with pytest.raises(LlmUnavailableError):
        await found(library)
    embedder.is_away = False
    assert await found(library) == ["About banks.", "About lanes.", "About tiles."]
    await library.close()


async def test_a_hashed_embedding_is_the_same_in_every_process() -> None:
    """Known values: no seed of the interpreter's hashes comes in."""
    passage = Passage(text="Bank conflicts.", code="", findings=(FindingKind.BANK_CONFLICT,))
    (vector,) = await HashedEmbedder().embed([passage])
    (again,) = HashedEmbedder().embed_now([passage])
    np.testing.assert_array_equal(vector, again)
