"""Opens the library as the environment says: which embeddings, and where their index lies."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from generator_svc.experience.embedding import Embedder, HashedEmbedder
from generator_svc.experience.library import ExperienceLibrary
from generator_svc.experience.litellm_embedding import LiteLlmEmbedder
from generator_svc.store.store import GeneratorStore
from kernel_foundry.domain.digest import content_digest
from kernel_foundry.domain.lesson import Lesson
from kernel_foundry.paths import data_dir

EMBEDDING_VARIABLE: Final = "KERNEL_FOUNDRY_EMBEDDING"
"""LiteLLM name of an embedding model; empty: the embedding that needs none."""


def open_library(
    store: GeneratorStore,
    environ: Mapping[str, str] | None = None,
    *,
    seeds: Mapping[str, Lesson] | None = None,
) -> ExperienceLibrary:
    """Return the library on a store that its caller closes, after the library.

    Args:
        store: Where lessons are kept.
        environ: None: the process's environment.
        seeds: Hand-written lessons by key; None: the package's.
    """
    model = (os.environ if environ is None else environ).get(EMBEDDING_VARIABLE, "")
    embedder: Embedder = LiteLlmEmbedder(model, store) if model else HashedEmbedder()
    file = index_file(store, embedder)
    return ExperienceLibrary(store, embedder=embedder, index_file=file, seeds=seeds)


def index_file(store: GeneratorStore, embedder: Embedder) -> Path:
    """Return where the index lies: beside a SQLite file, otherwise in the data folder.

    Each embedder has a file of its own, so that going back to it finds its vectors again.
    """
    suffix = content_digest(embedder.name)[:8]
    try:
        url = sa.make_url(store.url)
    except sa.exc.ArgumentError:  # the store says so itself, at its first use
        return data_dir() / f"lessons-{suffix}.faiss"
    if url.get_backend_name() == "sqlite" and url.database:
        return Path(f"{url.database}.lessons-{suffix}.faiss")
    place = content_digest(url.render_as_string(hide_password=True))[:8]
    return data_dir() / f"lessons-{place}-{suffix}.faiss"
