"""Vectors of lessons, each made once: the store keeps them for every embedder."""

from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np

from generator_svc.experience import tables
from generator_svc.experience.embedding import Embedder, Passage, Vectors
from generator_svc.store.store import GeneratorStore
from kernel_foundry.domain.digest import content_digest

_AT_ONCE: Final = 64
"""Passages embedded before their vectors are kept: what a provider was paid for is not lost."""


def passage_digest(passage: Passage) -> str:
    """SHA-256 hex digest of a passage: what changes when its vector does."""
    return content_digest(passage.text, passage.code, *passage.findings)


class LessonVectors:
    """Vectors of one embedder."""

    def __init__(self, store: GeneratorStore, embedder: Embedder) -> None:
        self._store = store
        self._embedder = embedder

    async def of(self, passages: Sequence[Passage]) -> Vectors:
        """Return a vector for each passage, (passages, dimension); raises as `Embedder.embed`."""
        passage_by_digest = {passage_digest(passage): passage for passage in passages}
        digests = tuple(passage_by_digest)
        name = self._embedder.name
        kept = await self._store.read(partial(tables.vectors, embedder=name, passages=digests))
        vectors = {digest: np.frombuffer(data, dtype="<f4") for digest, data in kept.items()}
        new = [digest for digest in digests if digest not in vectors]
        for start in range(0, len(new), _AT_ONCE):
            some = new[start : start + _AT_ONCE]
            embedded = await self._embedder.embed([passage_by_digest[d] for d in some])
            made = dict(zip(some, embedded, strict=True))
            data = {digest: vector.astype("<f4").tobytes() for digest, vector in made.items()}
            await self._store.write(partial(tables.keep_vectors, embedder=name, new=data))
            vectors |= made
        dimension = await self._embedder.dimension()
        return np.array(
            [vectors[passage_digest(passage)] for passage in passages], dtype=np.float32
        ).reshape(len(passages), dimension)
