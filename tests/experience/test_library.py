"""The library on its store: credited once, merged, sunk, bounded, shared, and durable."""

import asyncio
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from generator_svc.experience.library import ExperienceLibrary
from generator_svc.store.store import GeneratorStore
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.lesson import Lesson, LessonOrigin, LessonQuery
from kernel_foundry.domain.measures import Measures
from tests.experience.conftest import VECTOR, VECTOR_PLAN, evaluation, finding, lesson, source
from tests.experience.conftest import transition as observed

BANKS = lesson()
LANES = lesson(
    symptom="Every lane of a warp loads four bytes.",
    move="Let each thread load a float4.",
    findings=(FindingKind.MEMORY_BOUND,),
)
SWIZZLE = lesson(
    symptom="Bank conflicts in a tile of shared memory that cannot be padded.",
    move="Swizzle: exclusive or of the column with the row.",
)
QUERY = LessonQuery(
    language=Language.CUDA,
    findings=(FindingKind.BANK_CONFLICT,),
    text="bank conflicts in shared memory",
)


def _library(url: str, **options: object) -> ExperienceLibrary:
    return ExperienceLibrary(GeneratorStore(url), seeds={}, owns_store=True, **options)


async def _by_id(library: ExperienceLibrary, lesson_id: int) -> Lesson:
    (found,) = await library.lessons(after=lesson_id - 1, limit=1)
    return found


async def test_a_lesson_is_credited_with_the_mean_of_its_proposals(store_url: str) -> None:
    """Failures are counted apart, and the same proposal counts once."""
    library = _library(store_url)
    added = await library.add(BANKS)
    ids = (added.lesson.id,)
    await library.credit(ids, log_speedup=0.4, request_id="run/1")
    await library.credit(ids, log_speedup=0.4, request_id="run/1")
    await library.credit(ids, log_speedup=-0.2, request_id="run/2")
    await library.credit((*ids, 999), log_speedup=None, request_id="run/3")
    found = await _by_id(library, ids[0])
    assert found.effect == pytest.approx(0.1)
    assert (found.use_count, found.failure_count) == (3, 1)
    await library.close()


async def test_one_hopeless_parent_does_not_make_a_lesson(sqlite_url: str) -> None:
    """A thousandfold speed-up counts as tenfold, of what comes with its numbers as well."""
    library = _library(sqlite_url)
    thousand = math.log(1000.0)
    added = await library.add(BANKS)
    await library.credit((added.lesson.id,), log_speedup=thousand, request_id="run/1")
    assert (await _by_id(library, added.lesson.id)).effect == pytest.approx(math.log(10.0))
    for new in (LANES, replace(BANKS, source="elsewhere")):  # a new one, and one that is merged
        added = await library.add(replace(new, effect=thousand, use_count=1))
        assert added.lesson.effect == pytest.approx(math.log(10.0))
    await library.close()


async def test_refuted_lessons_sink_and_stay(sqlite_url: str) -> None:
    """Failures put the better match behind the other; it is found all the same."""
    library = _library(sqlite_url)
    await library.add(BANKS)
    await library.add(SWIZZLE)
    best, second = [hit.lesson for hit in await library.search(QUERY)]
    for number in range(8):
        await library.credit((best.id,), log_speedup=None, request_id=f"run/{number}")
    after = [hit.lesson.id for hit in await library.search(QUERY)]
    assert after == [second.id, best.id]
    await library.close()


async def test_lessons_that_only_slow_down_sink(sqlite_url: str) -> None:
    """Also when everything under them passed, which few others can say."""
    library = _library(sqlite_url)
    await library.add(replace(LANES, use_count=20, failure_count=8))
    await library.add(BANKS)
    await library.add(SWIZZLE)
    best, second = [hit.lesson for hit in await library.search(QUERY, limit=2)]
    scores = {hit.lesson.id: hit.score for hit in await library.search(QUERY)}
    for number in range(12):
        await library.credit((best.id,), log_speedup=-1.5, request_id=f"run/{number}")
    after = {hit.lesson.id: hit.score for hit in await library.search(QUERY)}
    assert after[best.id] < scores[best.id] - 0.05
    assert after[second.id] == pytest.approx(scores[second.id], abs=0.02)
    await library.close()


async def test_lessons_that_gained_rise(sqlite_url: str) -> None:
    """The lesser match goes first once its proposals became much faster."""
    library = _library(sqlite_url)
    await library.add(BANKS)
    await library.add(SWIZZLE)
    best, second = [hit.lesson for hit in await library.search(QUERY)]
    for number in range(12):
        await library.credit((second.id,), log_speedup=0.7, request_id=f"gain/{number}")
        await library.credit((best.id,), log_speedup=-0.7, request_id=f"loss/{number}")
    assert [hit.lesson.id for hit in await library.search(QUERY)] == [second.id, best.id]
    await library.close()


async def test_near_duplicates_become_one_lesson(store_url: str) -> None:
    """Statistics are pooled by passes; a person's wording is kept before a learnt one."""
    library = _library(store_url)
    learnt = replace(
        BANKS,
        move=BANKS.move.upper(),
        origin=LessonOrigin.LEARNT,
        source="run first, 0123",
        effect=0.6,
        use_count=3,
        failure_count=1,
        device="sm_90",
    )
    first = await library.add(learnt)
    second = await library.add(replace(BANKS, effect=0.3, use_count=1))
    assert (first.is_new, second.is_new) == (True, False)
    assert second.lesson.id == first.lesson.id
    assert (second.lesson.move, second.lesson.origin) == (BANKS.move, LessonOrigin.USER)
    assert second.lesson.effect == pytest.approx((0.6 * 2 + 0.3) / 3)
    assert (second.lesson.use_count, second.lesson.failure_count) == (4, 1)
    assert second.lesson.device == ""
    assert len(await library.lessons()) == 1
    await library.close()


@pytest.mark.parametrize(
    "difference",
    [{"language": Language.SYCL}, {"language": None}, {"findings": (FindingKind.STALL,)}],
    ids=["language", "both languages", "findings"],
)
async def test_alike_lessons_of_another_kind_stay_apart(
    sqlite_url: str, difference: dict[str, object]
) -> None:
    """The same words for another language, or for another finding, are another lesson."""
    library = _library(sqlite_url)
    await library.add(BANKS)
    assert (await library.add(replace(BANKS, **difference))).is_new
    await library.close()


async def test_repairs_that_differ_by_an_operator_are_two(sqlite_url: str) -> None:
    """Their vectors are the same; what mended it is not. A comment makes no difference."""
    library = _library(sqlite_url)
    repair = replace(BANKS, origin=LessonOrigin.LEARNT, excerpt="if (i < n) out[i] = x[i];")
    first = await library.add(repair)
    other = await library.add(replace(repair, excerpt="if (i <= n) out[i] = x[i];"))
    again = await library.add(replace(repair, excerpt=f"{repair.excerpt}  // mended", source="b"))
    assert (first.is_new, other.is_new, again.is_new) == (True, True, False)
    assert again.lesson.id == first.lesson.id
    faster = replace(repair, after=Measures(memory=1, algorithm=0, synchronization=0))
    assert not (await library.add(replace(faster, excerpt="if (i < m) out[i] = x[i];"))).is_new
    await library.close()


async def test_the_same_import_counts_once(sqlite_url: str) -> None:
    """Numbers that came once do not come again, nor do those that were never away."""
    library = _library(sqlite_url)
    own = (await library.add(replace(BANKS, effect=0.2, use_count=5))).lesson
    theirs = replace(BANKS, effect=0.4, use_count=3)
    for _ in range(2):
        merged = (await library.add(theirs)).lesson
        assert merged.use_count == 8
    await library.add(own)
    assert (await _by_id(library, own.id)).use_count == 8
    await library.close()


async def test_a_packages_lesson_from_elsewhere_becomes_the_users(sqlite_url: str) -> None:
    """Only the files of this package say what its own lessons are."""
    library = _library(sqlite_url)
    added = await library.add(replace(BANKS, origin=LessonOrigin.SEED))
    assert (added.is_new, added.lesson.origin) == (True, LessonOrigin.USER)
    assert await library.lessons() == (added.lesson,)
    learnt = (await library.add(replace(LANES, origin=LessonOrigin.LEARNT))).lesson
    again = await library.add(replace(LANES, origin=LessonOrigin.SEED, source="a version"))
    assert (again.lesson.id, again.lesson.origin) == (learnt.id, LessonOrigin.USER)
    await library.close()


async def test_only_so_many_are_learnt(sqlite_url: str) -> None:
    """The worst learnt lesson goes; what people wrote stays however bad it is."""
    library = _library(sqlite_url, most_learnt=3)
    kept = (await library.add(replace(BANKS, use_count=9, failure_count=9))).lesson
    learnt = []
    for number, words in enumerate(("alpha beta", "gamma delta", "epsilon zeta", "eta theta")):
        new = lesson(
            symptom=f"It says {words}.",
            move=f"Do {words} and more {words}.",
            findings=(FindingKind.STALL,),
            origin=LessonOrigin.LEARNT,
            use_count=4,
            failure_count=3 if number == 1 else 0,
        )
        learnt.append((await library.add(new)).lesson.id)
    left = {found.id for found in await library.lessons()}
    assert left == {kept.id, learnt[0], learnt[2], learnt[3]}
    hits = await library.search(replace(QUERY, text="gamma delta"), limit=9)
    assert learnt[1] not in [hit.lesson.id for hit in hits]
    await library.close()


async def test_two_libraries_on_one_store_see_each_other(store_url: str) -> None:
    """What one adds, credits or drops, the other finds so at its next call."""
    one, other = _library(store_url), _library(store_url, most_learnt=1)
    await one.search(QUERY)
    added = (await other.add(BANKS)).lesson
    assert [hit.lesson for hit in await one.search(QUERY)] == [added]
    await other.credit((added.id,), log_speedup=0.5, request_id="run/1")
    (hit,) = await one.search(QUERY)
    assert hit.lesson.use_count == 1
    assert not (await one.add(BANKS)).is_new
    learnt = replace(LANES, origin=LessonOrigin.LEARNT)
    gone = (await one.add(learnt)).lesson
    await other.add(replace(learnt, symptom="Quite another thing.", move="Unlike the first."))
    assert gone.id not in [hit.lesson.id for hit in await one.search(QUERY, limit=9)]
    await one.close()
    await other.close()


async def test_many_at_once_leave_one_lesson(sqlite_url: str) -> None:
    """Two libraries and twenty adds of the same lesson: each counts, none is doubled."""
    libraries = [_library(sqlite_url), _library(sqlite_url)]
    lessons = [replace(BANKS, use_count=1, effect=number / 100) for number in range(20)]
    added = await asyncio.gather(
        *(libraries[number % 2].add(one) for number, one in enumerate(lessons))
    )
    assert sum(one.is_new for one in added) == 1
    (found,) = await libraries[0].lessons()
    assert found.use_count == 20
    assert found.effect == pytest.approx(sum(one.effect for one in lessons) / 20)
    for library in libraries:
        await library.close()


@pytest.mark.slow
async def test_what_add_answered_survives_a_kill(sqlite_url: str) -> None:
    """The process dies right behind the answer, without closing anything."""
    code = (
        "import asyncio, os, sys\n"
        "from tests.experience.test_library import BANKS, _library\n"
        "async def main():\n"
        "    added = await _library(sys.argv[1]).add(BANKS)\n"
        "    os.write(1, str(added.lesson.id).encode())\n"
        "    os.kill(os.getpid(), 9)\n"
        "asyncio.run(main())\n"
    )
    died = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", code, sqlite_url],
        capture_output=True,
        cwd=Path(__file__).parents[2],
        env=dict(os.environ),
        check=False,
    )
    assert died.returncode == -9, died.stderr
    library = _library(sqlite_url)
    assert [hit.lesson.id for hit in await library.search(QUERY)] == [int(died.stdout)]
    await library.close()


async def test_a_recall_gives_only_what_fits(sqlite_url: str) -> None:
    """A prompt without lessons is better than one with others' lessons."""
    library = _library(sqlite_url)
    banks = (await library.add(BANKS)).lesson
    await library.add(
        lesson(
            symptom="The plan's grid is no whole number.",
            move="Use cdiv().",
            findings=(FindingKind.PLAN,),
        )
    )
    assert await library.recall(QUERY) == (banks,)
    nothing = LessonQuery(language=Language.CUDA, text="entirely unrelated words")
    assert await library.recall(nothing) == ()
    await library.close()


async def test_hits_say_different_things(sqlite_url: str) -> None:
    """Of two that say the same, one of them for every language, only the better one is shown."""
    library = _library(sqlite_url)
    await library.add(BANKS)
    assert (await library.add(replace(BANKS, language=None))).is_new
    await library.add(SWIZZLE)
    found = {(hit.lesson.move, hit.lesson.language) for hit in await library.search(QUERY)}
    assert found == {(BANKS.move, Language.CUDA), (SWIZZLE.move, Language.CUDA)}
    await library.close()


async def test_a_rewarding_transition_is_learnt_once_and_found(sqlite_url: str) -> None:
    """The lesson is there for the next run; a second report of the same child adds nothing."""
    library = _library(sqlite_url)
    bound = finding(FindingKind.MEMORY_BOUND, "memory-bound: 40% of what the memory can do")
    child = source(VECTOR, VECTOR_PLAN)
    rewarding = observed(
        evaluation(source(), median_ns=2000.0, findings=(bound,)),
        evaluation(
            child, median_ns=1000.0, measures=Measures(memory=1, algorithm=0, synchronization=0)
        ),
    )
    for _ in range(2):
        assert await library.learn(rewarding) is not None
    (found,) = await library.lessons()
    assert (found.use_count, found.effect) == (1, pytest.approx(math.log(2.0)))
    query = LessonQuery(
        language=Language.CUDA, findings=(FindingKind.MEMORY_BOUND,), text=bound.message
    )
    assert await library.recall(query) == (found,)
    # Shown once more without a gain for each time that it gained, it has no effect left.
    for sign in (-1, 0, 0):
        effect = sign * math.log(2.0)
        await library.credit((found.id,), log_speedup=effect, request_id=f"{sign} {query.text}")
    assert await library.recall(query) == ()
    noise = observed(evaluation(source()), evaluation(child))
    assert await library.learn(noise) is None
    await library.close()


async def test_a_lesson_that_nobody_could_add_is_not_learnt(store_url: str) -> None:
    """Its texts are those of a client, and go into the prompts of other runs."""
    library = _library(store_url)
    child = source(VECTOR, VECTOR_PLAN)
    told = observed(evaluation(source(), median_ns=2000.0), evaluation(child, median_ns=1000.0))
    task = replace(told.request.task, name="x" * 47_000)
    request = replace(told.request, task=task)
    assert await library.learn(replace(told, request=request)) is None
    assert await library.lessons() == ()
    assert await library.learn(told) is not None
    await library.close()
