"""Lessons are found: queries written by hand, with the lessons a person would want to be shown."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from generator_svc.experience.columns import LessonColumns
from generator_svc.experience.concepts import known_concepts, stem, words
from generator_svc.experience.embedding import (
    HASHED_LIKENESS,
    HashedEmbedder,
    Passage,
    passage_of_query,
)
from generator_svc.experience.index import LessonIndex
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.lesson import Lesson, LessonQuery
from kernel_foundry.domain.measures import Measures
from tests.experience.conftest import SCALAR, VECTOR, lesson
from tests.experience.recall import answers

_FOLDER = Path(__file__).parent
_LEAST_RECALL = 0.8
VECTOR_OF_ALL = np.eye(4, dtype=np.float32)[0]


@pytest.mark.parametrize("name", ["development_queries.yaml", "held_out_queries.yaml"])
async def test_what_a_person_would_want_is_among_the_first_five(tmp_path: Path, name: str) -> None:
    """Without any model: mean share of the expected lessons over a file's queries."""
    answered = await answers(_FOLDER / name, tmp_path)
    missed = {one.text: one.found for one in answered if one.recall < 1.0}
    recall = sum(one.recall for one in answered) / len(answered)
    assert recall >= _LEAST_RECALL, missed


def _cosine(one: Passage, other: Passage) -> float:
    first, second = HashedEmbedder().embed_now([one, other])
    return float(first @ second)


def _passage(text: str = "", code: str = "", *findings: FindingKind) -> Passage:
    return Passage(text=text, code=code, findings=findings)


def test_vectors_have_length_one_and_nothing_has_length_zero() -> None:
    """Cosines are dot products."""
    some, nothing = HashedEmbedder().embed_now([_passage("bank conflicts"), _passage()])
    assert np.linalg.norm(some) == pytest.approx(1.0)
    assert not nothing.any()


def test_words_in_other_inflections_are_the_same() -> None:
    """So are words of one concept, and code that speaks of it."""
    assert stem("reductions") == stem("reduction")
    assert words("Vectorised loads, the load") == [stem("vectorised"), "load", "load"]
    text = _passage("every lane shuffles its partial sum in the warp")
    shuffle = _passage(code="v += __shfl_xor_sync(0xffffffff, v, 16);")
    plain = _passage(code="if (i < n) out[i] = x[i] / y[i];")
    assert _cosine(text, shuffle) > _cosine(text, plain) + 0.1


def test_a_finding_is_near_what_speaks_of_it() -> None:
    """Although it has no word of its own."""
    conflict = _passage("", "", FindingKind.BANK_CONFLICT)
    assert _cosine(conflict, _passage("pad the rows to avoid bank conflicts")) > 0.2
    assert _cosine(conflict, _passage("fuse two launches")) < 0.05


def test_code_is_near_code_of_the_same_constructs() -> None:
    """Names and sizes may differ."""
    renamed = VECTOR.replace("scale", "triple").replace("2.0f", "3.0f")
    one, other = _passage("", VECTOR), _passage("", renamed)
    assert _cosine(one, other) > _cosine(one, _passage("", SCALAR)) + 0.1


def test_concepts_are_told_from_both_sides() -> None:
    """By cues of one or several words, and by identifiers or their beginnings."""
    concepts = known_concepts()
    assert "bank_conflict" in concepts.in_words(words("Bank conflicts in the tile"))
    assert "bank_conflict" not in concepts.in_words(words("conflicts at the river"))
    assert "sub_group" in concepts.in_code(["__shfl_down_sync"])
    assert concepts.in_code(["x", "i"]) == {}


def test_matches_lift_a_lesson() -> None:
    """Of equal texts the one with the finding, the measures and the device goes first."""
    here = Measures(memory=1, algorithm=1, synchronization=1)
    there = Measures(memory=2, algorithm=1, synchronization=1)
    plain = lesson(id=1, findings=())
    fits = [
        replace(plain, id=2, findings=(FindingKind.BANK_CONFLICT,)),
        replace(plain, id=3, before=here),
        replace(plain, id=4, after=there),
        replace(plain, id=5, device="sm_90"),
        replace(plain, id=6),
    ]
    query = LessonQuery(
        language=Language.CUDA,
        findings=(FindingKind.BANK_CONFLICT,),
        device="sm_90",
        before=here,
        target=there,
    )
    for better in fits[:-1]:
        # An equal text is shown once only, so the first one alone tells.
        (first,) = _index([plain, better]).search(VECTOR_OF_ALL, query, 1)
        assert first.id == better.id
    (first,) = _index([plain, fits[-1]]).search(VECTOR_OF_ALL, query, 1)
    assert first.id == plain.id, "of equal ones the older"


def test_a_role_that_is_named_twice_is_still_that_role() -> None:
    """However many roles there are, and also when two share a place."""
    columns = LessonColumns()
    for number in range(70):
        columns.put(lesson(id=number, experts=(f"role {number}",) * 2))
    for number in (0, 1, 63, 69):
        assert number in columns.suitable(Language.CUDA, f"role {number}")
    assert 0 not in columns.suitable(Language.CUDA, "role 1")


def test_a_large_library_answers_with_as_many_as_asked_for() -> None:
    random = np.random.default_rng(1)
    index = LessonIndex(384, HASHED_LIKENESS)
    kinds = tuple(FindingKind)
    languages = [(Language.CUDA, Language.SYCL, None)[number % 3] for number in range(2_001)]
    index.put(
        lesson(
            id=number,
            language=languages[number],
            findings=(kinds[number % len(kinds)],),
        )
        for number in range(1, 2_001)
    )
    vectors = random.standard_normal((2_000, 384)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    index.put_vectors(range(1, 2_001), vectors)
    query = LessonQuery(language=Language.CUDA, findings=kinds[:2], text="x")
    for number in range(100):
        found = index.search(vectors[number], query, 5)
        assert len({one.id for one in found}) == 5
        assert all(languages[one.id] is not Language.SYCL for one in found)


def _index(lessons: list[Lesson]) -> LessonIndex:
    index = LessonIndex(4, HASHED_LIKENESS)
    index.put(lessons)
    index.put_vectors([one.id for one in lessons], np.stack([VECTOR_OF_ALL] * len(lessons)))
    return index


def test_a_query_is_a_passage_of_text_code_and_findings() -> None:
    """Language, role and device are for the ranking."""
    query = LessonQuery(
        language=Language.SYCL, text="a", code="b", findings=(FindingKind.STALL,), expert="memory"
    )
    assert passage_of_query(query) == _passage("a", "b", FindingKind.STALL)
