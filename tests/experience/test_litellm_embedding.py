"""Embeddings through LiteLLM's HTTP path: asked once, kept, and refused when they are none."""

import gc
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest

from generator_svc.experience.embedding import Passage
from generator_svc.experience.library import ExperienceLibrary
from generator_svc.experience.litellm_embedding import LiteLlmEmbedder
from generator_svc.experience.opening import open_library
from generator_svc.experience.vectors import LessonVectors
from generator_svc.store.store import GeneratorStore
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.lesson import Lesson, LessonOrigin, LessonQuery
from kernel_foundry.errors import LlmConfigurationError, LlmUnavailableError
from tests.llm_server import LlmServer

pytestmark = pytest.mark.slow

MODEL = "openai/text-embedding-3-small"
BANKS = Passage(text="bank conflicts", code="", findings=(FindingKind.BANK_CONFLICT,))
LANES = Passage(text="lanes gather", code="x[i * cols]", findings=())


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[GeneratorStore]:
    store = GeneratorStore(f"sqlite:///{tmp_path / 'generator.db'}")
    yield store
    await store.close()


@pytest.fixture
async def embedder() -> AsyncIterator[LiteLlmEmbedder]:
    embedder = LiteLlmEmbedder(MODEL)
    yield embedder
    await embedder.close()


async def test_vectors_come_from_the_model_and_have_length_one(
    llm_server: LlmServer, embedder: LiteLlmEmbedder
) -> None:
    """One request for many passages, in their order."""
    vectors = await embedder.embed([BANKS, LANES, BANKS])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, rtol=1e-5)
    np.testing.assert_array_equal(vectors[0], vectors[2])
    (request,) = llm_server.embedding_requests
    assert request.model == "text-embedding-3-small"
    assert len(request.body["input"]) == 3


async def test_what_was_paid_for_is_kept(
    store: GeneratorStore, llm_server: LlmServer, embedder: LiteLlmEmbedder
) -> None:
    """Another embedder of the same model asks only for what is new."""
    first = await LessonVectors(store, embedder).of([BANKS])
    other = LiteLlmEmbedder(MODEL)
    again = LessonVectors(store, other)
    np.testing.assert_array_equal(first, (await again.of([BANKS, LANES, BANKS]))[::2][:1])
    texts = [request.body["input"] for request in llm_server.embedding_requests]
    assert sum("bank conflicts" in text for asked in texts for text in asked) == 1
    assert sum("lanes gather" in text for asked in texts for text in asked) == 1
    await other.close()


async def test_a_library_finds_lessons_by_a_model(
    store: GeneratorStore, llm_server: LlmServer
) -> None:
    """The environment's name of a model is all it takes."""
    library = open_library(store, {"KERNEL_FOUNDRY_EMBEDDING": MODEL})
    hits = await library.search(
        LessonQuery(language=Language.CUDA, text="bank conflicts in shared memory"), limit=3
    )
    await library.close()
    assert any(FindingKind.BANK_CONFLICT in hit.lesson.findings for hit in hits)
    assert llm_server.embedding_requests


async def test_a_provider_that_does_not_answer_costs_a_proposal_its_lessons_only(
    store: GeneratorStore, embedder: LiteLlmEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search says why; a recall is empty."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    library = ExperienceLibrary(store, embedder=embedder, seeds={})
    query = LessonQuery(language=Language.CUDA, text="bank conflicts")
    with pytest.raises(LlmUnavailableError, match="text-embedding-3-small"):
        await library.search(query)
    assert await library.recall(query) == ()


async def test_a_missing_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is asked without it."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(LlmConfigurationError, match="OPENAI_API_KEY") as raised:
        await LiteLlmEmbedder(MODEL).embed([BANKS])
    assert "unset that" in raised.value.message, "--model would not help"


async def test_going_to_another_model_and_back_finds_the_same_lessons(
    store: GeneratorStore, llm_server: LlmServer
) -> None:
    lesson = Lesson(
        symptom="Bank conflicts.",
        move="Pad the rows.",
        language=Language.CUDA,
        source="a manual",
        origin=LessonOrigin.USER,
    )
    query = LessonQuery(language=Language.CUDA, text="bank conflicts")
    offline = open_library(store, {})
    added = await offline.add(lesson)
    await offline.close()
    for environ in ({"KERNEL_FOUNDRY_EMBEDDING": MODEL}, {}):
        library = open_library(store, environ)
        hits = await library.search(query, limit=20)
        await library.close()
        assert added.lesson in [hit.lesson for hit in hits]


async def test_a_closed_library_holds_no_connection(
    store: GeneratorStore, llm_server: LlmServer
) -> None:
    """A server that keeps connections open sees each of them end."""
    library = open_library(store, {"KERNEL_FOUNDRY_EMBEDDING": MODEL})
    await library.search(LessonQuery(language=Language.CUDA, text="bank conflicts"), limit=1)
    assert _open_connections(llm_server)
    await library.close()
    assert not _open_connections(llm_server)


def _open_connections(server: LlmServer) -> list[socket.socket]:
    """Return this process's sockets that are connected to `server`."""
    address = ("127.0.0.1", urlsplit(server.base_url).port)
    return [s for s in gc.get_objects() if isinstance(s, socket.socket) and _peer(s) == address]


def _peer(one: socket.socket) -> object:
    try:
        return one.getpeername()
    except OSError:
        return None
