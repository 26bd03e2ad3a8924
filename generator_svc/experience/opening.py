"""Opens the library with the embeddings that the environment names."""

import os
from collections.abc import Mapping
from typing import Final

from generator_svc.experience.embedding import Embedder, HashedEmbedder
from generator_svc.experience.library import ExperienceLibrary
from generator_svc.experience.litellm_embedding import LiteLlmEmbedder
from generator_svc.store.store import GeneratorStore
from kernel_foundry.domain.lesson import Lesson

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
    embedder: Embedder = LiteLlmEmbedder(model) if model else HashedEmbedder()
    return ExperienceLibrary(store, embedder=embedder, seeds=seeds)
