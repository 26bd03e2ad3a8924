"""What an experience library promises: as an object, behind a UNIX socket, and by a gateway."""

import math
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from generator_svc.experience.library import ExperienceLibrary
from generator_svc.experience_service import experience_service
from generator_svc.store.store import GeneratorStore
from kernel_foundry.domain.candidate import LONGEST_CANDIDATE
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.lesson import (
    LONGEST_QUERY,
    MAX_EXCERPT_CHARS,
    Lesson,
    LessonOrigin,
    LessonQuery,
)
from kernel_foundry.domain.measures import Measures
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.ports import Experience
from kernel_foundry.rpc.experience import RemoteExperience
from tests.contract.conftest import each_way, reach
from tests.rpc.gateway import by_gateway

BANKS = Lesson(
    symptom="Passes over shared memory are repeated because of bank conflicts.",
    move="Pad each row of the tile by one element.",
    language=Language.CUDA,
    findings=(FindingKind.BANK_CONFLICT,),
    experts=("memory",),
    device="sm_90",
    before=Measures(memory=2, algorithm=1, synchronization=1),
    after=Measures(memory=2, algorithm=1, synchronization=1),
    excerpt="__shared__ float tile[32][33];",
    source="a manual",
    origin=LessonOrigin.USER,
    effect=0.25,
    use_count=3,
    failure_count=1,
)
LANES = Lesson(
    symptom="A loop counter of each lane makes the compiler gather.",
    move="Count uniformly over the sub-group and add the lane.",
    language=Language.SYCL,
    findings=(FindingKind.STRIDED_ACCESS,),
    source="a measurement",
    origin=LessonOrigin.USER,
)
BOTH = Lesson(
    symptom="The sum of exponentials overflows to infinity.",
    move="Subtract the row's maximum before the exponential.",
    language=None,
    findings=(FindingKind.NOT_A_NUMBER,),
    source="a textbook",
    origin=LessonOrigin.USER,
)


@pytest.fixture(params=[*each_way("local"), "gateway"])
async def experience(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Experience]:
    """The library without hand-written lessons, reached each way."""
    store = GeneratorStore(f"sqlite:///{tmp_path / 'generator.db'}")
    implementation: Experience = ExperienceLibrary(store, seeds={}, owns_store=True)
    async with AsyncExitStack() as stack:
        if request.param == "gateway":
            implementation = await stack.enter_async_context(
                by_gateway(implementation, experience_service, RemoteExperience)
            )
        reached = await stack.enter_async_context(
            reach(request.param, tmp_path, implementation, experience_service, RemoteExperience)
        )
        for lesson in (BANKS, LANES, BOTH):
            await reached.add(lesson)
        yield reached


async def test_a_lesson_comes_back_as_it_was_given(experience: Experience) -> None:
    """Every field survives, and the id is the store's."""
    lessons = await experience.lessons()
    assert [replace(lesson, id=0) for lesson in lessons] == [BANKS, LANES, BOTH]
    assert len({lesson.id for lesson in lessons} - {0}) == 3


async def test_lessons_come_in_pages(experience: Experience) -> None:
    """A page ends at its limit, and the next goes on behind its last id."""
    (first,) = await experience.lessons(limit=1)
    rest = await experience.lessons(after=first.id, limit=10)
    assert [BANKS.symptom, LANES.symptom, BOTH.symptom] == [x.symptom for x in (first, *rest)]
    assert await experience.lessons(after=rest[-1].id) == ()


async def test_search_gives_the_language_asked_for_and_what_is_for_both(
    experience: Experience,
) -> None:
    """The best comes first; another language's lessons never do."""
    query = LessonQuery(
        language=Language.CUDA, findings=(FindingKind.BANK_CONFLICT,), text="bank conflicts"
    )
    hits = await experience.search(query)
    assert [BANKS.symptom, BOTH.symptom] == [hit.lesson.symptom for hit in hits]
    assert hits[0].score >= hits[1].score
    assert all(-1.0 <= hit.similarity <= 1.0 for hit in hits)
    assert len(await experience.search(query, limit=1)) == 1


async def test_search_leaves_out_what_is_for_other_roles(experience: Experience) -> None:
    """A lesson for one role is found by it and by nobody in particular."""
    query = LessonQuery(language=Language.CUDA, text="bank conflicts in shared memory")
    for expert, expected in (("memory", True), ("compute", False), ("", True)):
        hits = await experience.search(replace(query, expert=expert))
        assert expected == any(hit.lesson.symptom == BANKS.symptom for hit in hits), expert


async def test_the_same_lesson_again_is_no_new_one(experience: Experience) -> None:
    """It answers with the stored one, whose numbers are as they were."""
    (stored, *_) = await experience.lessons()
    added = await experience.add(BANKS)
    assert not added.is_new
    assert stored == added.lesson
    assert len(await experience.lessons()) == 3


@pytest.mark.parametrize(
    "fault",
    [
        {"symptom": " "},
        {"move": ""},
        {"source": ""},
        {"excerpt": "x" * (MAX_EXCERPT_CHARS + 1)},
        {"failure_count": 4},
        {"use_count": -1, "failure_count": -1},
        {"use_count": 10**12},
        {"effect": math.inf},
        {"effect": math.nan},
        {"effect": -1000.0},
        {"symptom": "half a character \udcff"},
        {"experts": ("memory", " ")},
        {"experts": tuple(f"role {number}" for number in range(100))},
    ],
    ids=lambda fault: " ".join(f"{name} {str(value)[:20]!a}" for name, value in fault.items()),
)
async def test_a_lesson_that_cannot_be_is_refused(
    experience: Experience, fault: dict[str, object]
) -> None:
    """Nothing of it is stored."""
    with pytest.raises(InvalidArgumentError):
        await experience.add(replace(BANKS, **fault))
    assert len(await experience.lessons()) == 3


async def test_a_text_to_search_by_is_bounded(experience: Experience) -> None:
    """Embedding it takes time in proportion."""
    query = LessonQuery(language=Language.CUDA, text="x" * LONGEST_QUERY)
    await experience.search(query)
    for wrong in (
        replace(query, text=query.text + "x"),
        replace(query, code="x" * (LONGEST_CANDIDATE + 1)),
    ):
        with pytest.raises(InvalidArgumentError, match="expected at most") as caught:
            await experience.search(wrong)
        assert caught.value.metadata["field"] in ("query.text", "query.code")


async def test_limits_below_one_are_refused(experience: Experience) -> None:
    with pytest.raises(InvalidArgumentError):
        await experience.lessons(limit=0)
    with pytest.raises(InvalidArgumentError):
        await experience.lessons(after=-1)
    with pytest.raises(InvalidArgumentError):
        await experience.search(LessonQuery(language=Language.CUDA), limit=0)
