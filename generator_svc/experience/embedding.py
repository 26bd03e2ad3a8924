"""Embeddings: passages to vectors whose cosine says how much they have to do with each other.

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
    """What a lesson or a query says."""

    text: str
    code: str
    findings: tuple[FindingKind, ...]


def passage_of_lesson(lesson: Lesson) -> Passage:
    """Return what a lesson is found by."""
    return Passage(
        text=f"{lesson.symptom}\n{lesson.move}", code=lesson.excerpt, findings=lesson.findings
    )


def passage_of_query(query: LessonQuery) -> Passage:
    """Return what a query asks for."""
    return Passage(text=query.text, code=query.code, findings=query.findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """From which cosines on two lessons say the same; each way to embed has its own scale."""

    duplicate: float
    """A new lesson is an old one in other words."""
    alike: float
    """Of two hits only the better one is given."""


class Embedder(Protocol):
    """Turns passages into vectors."""

    @property
    def name(self) -> str:
        """Names how the vectors are made: vectors of different names are not compared."""
        ...

    @property
    def likeness(self) -> Likeness:
        """From which cosines on two lessons say the same."""
        ...

    async def dimension(self) -> int:
        """Return the length of a vector."""
        ...

    async def embed(self, passages: Sequence[Passage]) -> Vectors:
        """Return a vector for each passage; one that says nothing may be all zero.

        Raises:
            LlmConfigurationError, LlmQuotaError, LlmUnavailableError: of a model's provider.
        """
        ...


_VERSION: Final = 1
"""Changes with anything below that changes vectors."""

_WORD_DIMENSIONS: Final = 192
_CODE_DIMENSIONS: Final = 128
_WORD_WEIGHT: Final = 1.0
_CONCEPT_WEIGHT: Final = 1.0
_CODE_WEIGHT: Final = 0.35
"""Of each part, before the whole is brought to length 1. Code says little of what it lacks."""

_PAIR_WEIGHT: Final = 0.6
"""Of two words beside each other, against 1 for a word."""
_KIND_WEIGHT: Final = 1.5
"""Of a finding's kind among the concepts, against 1 for one cue in prose."""
_CODE_CUE_WEIGHT: Final = 0.4
"""Of a concept in code: most of what a kernel does is not what it suffers from."""
_MAX_CODE_CHARS: Final = 12_000
_IN_THREAD_ABOVE: Final = 8
"""Passages that are embedded without leaving the event loop: some milliseconds."""


HASHED_LIKENESS: Final = Likeness(duplicate=0.90, alike=0.85)
"""What runs write of one move on two tasks reaches 0.90, while no two lessons of the package
come to 0.7."""


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
    """Return `vector` with length 1; one of length 0 stays."""
    length = float(np.linalg.norm(vector))
    return vector if length == 0.0 else vector / np.float32(length)


def _damped(count: int) -> float:
    return 1.0 + math.log(count)


def _terms(stems: Sequence[str]) -> dict[str, float]:
    """Return words and pairs of words; numbers say little."""
    telling = [stem for stem in stems if not stem.isdigit()]
    terms = {term: _damped(count) for term, count in Counter(telling).items()}
    return terms | {f"{one} {other}": _PAIR_WEIGHT for one, other in pairwise(stems)}


def _pieces(names: Sequence[str]) -> dict[str, float]:
    """Return identifiers and their pairs and triples, which tell constructs apart."""
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
