"""Embeddings by any model that LiteLLM reaches, which is loaded by the first passage."""

import asyncio
from collections.abc import Sequence
from types import ModuleType
from typing import Any, Final

import numpy as np

from generator_svc.experience.embedding import Likeness, Passage, Vectors, unit
from generator_svc.llm.litellm_models import load_sdk
from generator_svc.llm.retrying import FailedAttempt
from kernel_foundry.errors import (
    KernelFoundryError,
    LlmConfigurationError,
    LlmUnavailableError,
)

_VERSION: Final = 1
"""Changes with `_text`."""
_AT_ONCE: Final = 64
"""Passages of one request."""
_MAX_TEXT_CHARS: Final = 6_000
_MAX_CODE_CHARS: Final = 6_000
"""Together well below the 8,192 tokens that embedding models commonly take."""
_PROBE: Final = Passage(text="dimension", code="", findings=())

_REQUEST_SECONDS: Final = 15.0

_LIKENESS: Final = Likeness(duplicate=0.98, alike=0.95)
"""Dense models bring any two texts on kernels close together; not measured, so chosen to merge
too little rather than too much."""


class LiteLlmEmbedder:
    """Vectors of one embedding model.

    Args:
        model: LiteLLM name, such as "openai/text-embedding-3-small".
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self._dimension = 0
        self._sdk: ModuleType | None = None

    @property
    def name(self) -> str:
        """See `Embedder.name`."""
        return f"{self._model} {_VERSION}"

    @property
    def likeness(self) -> Likeness:
        """See `Embedder.likeness`."""
        return _LIKENESS

    async def dimension(self) -> int:
        """See `Embedder.dimension`; what the model gives."""
        if not self._dimension:
            self._dimension = (await self.embed([_PROBE])).shape[1]
        return self._dimension

    async def embed(self, passages: Sequence[Passage]) -> Vectors:
        """See `Embedder.embed`."""
        texts = [_text(passage) for passage in passages]
        if not texts:
            return np.zeros((0, self._dimension), dtype=np.float32)
        vectors: list[Vectors] = []
        for start in range(0, len(texts), _AT_ONCE):
            vectors += await self._ask(texts[start : start + _AT_ONCE])
        return np.stack(vectors)

    async def close(self) -> None:
        """See `Embedder.close`; loads nothing."""
        if self._sdk is not None:
            await self._sdk.close()

    async def _ask(self, texts: list[str]) -> list[Vectors]:
        self._sdk = sdk = await asyncio.to_thread(load_sdk)
        try:
            sdk.check(self._model)
        except LlmConfigurationError as error:
            raise LlmConfigurationError(
                f"{error.message}. It makes the embeddings of lessons, since "
                "KERNEL_FOUNDRY_EMBEDDING names it; unset that for those that need no model",
                **error.metadata,
            ) from error
        failure: KernelFoundryError
        try:
            answer = await sdk.embed(self._model, texts, _REQUEST_SECONDS)
            return self._vectors(answer, len(texts))
        except FailedAttempt as failed:
            failure = failed.error
        # Raised out here: the provider's own exception may hold a key, and would be its context.
        raise failure

    def _vectors(self, answer: Any, count: int) -> list[Vectors]:
        try:
            vectors = np.array(answer, dtype=np.float32)
        except (TypeError, ValueError):
            vectors = np.zeros(0, dtype=np.float32)
        is_whole = vectors.ndim == 2 and len(vectors) == count and vectors.shape[1] > 0
        has_known_length = is_whole and self._dimension in (0, vectors.shape[1])
        if not has_known_length or not np.isfinite(vectors).all():
            raise LlmUnavailableError(
                f"model {self._model!r} did not answer with embeddings of {count} texts",
                model=self._model,
            )
        return [unit(vector) for vector in vectors]


def _text(passage: Passage) -> str:
    """Return a passage as one text: what it is about comes first."""
    kinds = ", ".join(kind.value.replace("_", " ") for kind in passage.findings)
    parts = (kinds, passage.text[:_MAX_TEXT_CHARS], passage.code[:_MAX_CODE_CHARS])
    return "\n\n".join(part for part in parts if part) or "nothing"
