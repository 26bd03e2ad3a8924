"""Embeddings: turns passages into vectors whose cosine is their similarity.

`HashedEmbedder` needs no model and no network: it hashes words, concepts and pieces of code.
Vectors are kept by `vectors`.
"""

import asyncio
import math
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from generator_svc.experience.concepts import identifiers, known_concepts, words
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.lesson import Lesson, LessonQuery

Vectors = npt.NDArray[np.float32]
"""(passages, dimension), each row of length 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """The content of a lesson or a query."""

    text: str
    code: str
    findings: tuple[FindingKind, ...]


def passage_of_lesson(lesson: Lesson) -> Passage:
    """Return the passage by which a lesson is found."""
    return Passage(
        text=f"{lesson.symptom}\n{lesson.move}", code=lesson.excerpt, findings=lesson.findings
    )


def passage_of_query(query: LessonQuery) -> Passage:
    """Return the passage of a query."""
    return Passage(text=query.text, code=query.code, findings=query.findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """Cosines from which two lessons say the same; each embedder has its own scale."""

    duplicate: float
    """Cosine from which a new lesson is an old one in other words."""
    alike: float
    """Cosine from which only the better one of two hits is returned."""


class Embedder(Protocol):
    """Turns passages into vectors."""

    @property
    def name(self) -> str:
        """Name of the method: vectors of different methods are not compared."""
        ...

    @property
    def likeness(self) -> Likeness:
        """The cosines from which two lessons say the same."""
        ...

    async def dimension(self) -> int:
        """Return the length of a vector."""
        ...

    async def embed(self, passages: Sequence[Passage]) -> Vectors:
        """Return a vector for each passage, shape (passages, dimension); an empty one may be zero.

        Raises:
            LlmConfigurationError, LlmQuotaError, LlmUnavailableError: of a model's provider.
        """
        ...

    async def close(self) -> None:
        """Close connections to a provider."""
        ...


_VERSION: Final = 1
"""To be raised with any change below that changes vectors."""

_WORD_DIMENSIONS: Final = 192
_CODE_DIMENSIONS: Final = 128
_WORD_WEIGHT: Final = 1.0
_CONCEPT_WEIGHT: Final = 1.0
_CODE_WEIGHT: Final = 0.35
"""Weight of the part for code, as those above of words and concepts, before the vector is scaled to
length 1. Code says little about what it lacks."""

_PAIR_WEIGHT: Final = 0.6
"""Weight of two neighbouring words; one word has 1."""
_KIND_WEIGHT: Final = 1.5
"""Weight of a finding's kind among the concepts; one cue in prose has 1."""
_CODE_CUE_WEIGHT: Final = 0.4
"""Weight of a concept in code: most of what a kernel does is not its problem."""
_MAX_CODE_CHARS: Final = 12_000
_IN_THREAD_ABOVE: Final = 8
"""Most passages that are embedded in the event loop, which takes some milliseconds."""


HASHED_LIKENESS: Final = Likeness(duplicate=0.90, alike=0.85)
"""Two lessons that runs wrote about one move on two tasks reach 0.90; no two lessons of the package
reach 0.7."""


class HashedEmbedder:
    """Vectors from counted words, concepts and pieces of code; the same on every machine."""

    def __init__(self) -> None:
        self._concepts = known_concepts()
        names = (*self._concepts.names, *(f"finding {kind.value}" for kind in FindingKind))
        self._position = {name: position for position, name in enumerate(names)}
        self._dimension = _WORD_DIMENSIONS + len(names) + _CODE_DIMENSIONS
        self._name = f"hashed-{_VERSION}-{self._concepts.digest[:8]}"

    @property
    def name(self) -> str:
        """See `Embedder.name`."""
        return self._name

    @property
    def likeness(self) -> Likeness:
        """See `Embedder.likeness`."""
        return HASHED_LIKENESS

    async def dimension(self) -> int:
        """See `Embedder.dimension`."""
        return self._dimension

    async def embed(self, passages: Sequence[Passage]) -> Vectors:
        """See `Embedder.embed`; never raises."""
        if len(passages) > _IN_THREAD_ABOVE:
            return await asyncio.to_thread(self.embed_now, passages)
        return self.embed_now(passages)

    async def close(self) -> None:
        """See `Embedder.close`; there are no connections."""

    def embed_now(self, passages: Sequence[Passage]) -> Vectors:
        """Return the same without an event loop."""
        vectors = np.zeros((len(passages), self._dimension), dtype=np.float32)
        for row, passage in zip(vectors, passages, strict=True):
            row[:] = self._vector(passage)
        return vectors

    def _vector(self, passage: Passage) -> Vectors:
        stems = words(passage.text)
        names = identifiers(passage.code[:_MAX_CODE_CHARS])
        return unit(
            np.concatenate(
                [
                    _WORD_WEIGHT * unit(_hashed(_terms(stems), _WORD_DIMENSIONS)),
                    _CONCEPT_WEIGHT * unit(self._concept_counts(stems, names, passage.findings)),
                    _CODE_WEIGHT * unit(_hashed(_pieces(names), _CODE_DIMENSIONS)),
                ]
            )
        )

    def _concept_counts(
        self, stems: Sequence[str], names: Iterable[str], findings: Iterable[FindingKind]
    ) -> Vectors:
        counts = np.zeros(len(self._position), dtype=np.float32)
        for name, count in self._concepts.in_code(names).items():
            counts[self._position[name]] = _CODE_CUE_WEIGHT * _damped(count)
        for name, count in self._concepts.in_words(stems).items():
            counts[self._position[name]] += _damped(count)
        for kind in findings:
            counts[self._position[f"finding {kind.value}"]] = _KIND_WEIGHT
            if kind.value in self._concepts.names:
                counts[self._position[kind.value]] += _KIND_WEIGHT
        return counts


def unit(vector: Vectors) -> Vectors:
    """Return `vector` scaled to length 1; a zero vector stays."""
    length = float(np.linalg.norm(vector))
    return vector if length == 0.0 else vector / np.float32(length)


def _damped(count: int) -> float:
    return 1.0 + math.log(count)


def _terms(stems: Sequence[str]) -> dict[str, float]:
    """Return words and pairs of words with their weights; numbers are left out of single words."""
    telling = [stem for stem in stems if not stem.isdigit()]
    terms = {term: _damped(count) for term, count in Counter(telling).items()}
    return terms | {f"{one} {other}": _PAIR_WEIGHT for one, other in pairwise(stems)}


def _pieces(names: Sequence[str]) -> dict[str, float]:
    """Return identifiers, their pairs and triples with weights; these distinguish constructs."""
    counts: Counter[str] = Counter()
    for length in (1, 2, 3):
        counts.update(
            " ".join(names[start : start + length]) for start in range(len(names) - length + 1)
        )
    return {piece: _damped(count) for piece, count in counts.items()}


def _hashed(terms: Mapping[str, float], dimensions: int) -> Vectors:
    """Return weighted terms summed into `dimensions`, each with a sign of its own."""
    vector = np.zeros(dimensions, dtype=np.float32)
    if not terms:
        return vector
    hashes = np.fromiter((zlib.crc32(term.encode()) for term in terms), np.uint32, len(terms))
    weights = np.fromiter(terms.values(), np.float32, len(terms))
    signs = np.where(hashes >> 31, np.float32(-1.0), np.float32(1.0))
    np.add.at(vector, hashes % dimensions, signs * weights)
    return vector
