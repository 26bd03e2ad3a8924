"""The experience library with 10,000 lessons: search, embedding, durable insert, start, recall.

Fills a store with variants of the hand-written lessons, then asks and adds as a generator does. The
time of a search is that of the whole call, with the look at the database, less that of embedding
the query. Recall is that of the hand-written queries of the tests, on the hand-written lessons
alone.

Run: python -m benchmarks.experience_search [--lessons 10000] [--rounds 300] [--out FILE]
"""

import argparse
import asyncio
import json
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from benchmarks.result_file import out_option, write_host_result
from generator_svc.experience import tables
from generator_svc.experience.embedding import (
    HashedEmbedder,
    Passage,
    Vectors,
)
from generator_svc.experience.library import ExperienceLibrary
from generator_svc.experience.seeds import seed_lessons
from generator_svc.store.store import GeneratorStore
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.lesson import Lesson, LessonOrigin, LessonQuery
from tests.experience.recall import Answered, answers

NAME: Final = "experience_search"

_QUERIES: Final = Path(__file__).parents[1] / "tests" / "experience"
_RECALL_AT: Final = (1, 3, 5)
_KERNEL_CHARS: Final = 6_000
"""Of the code in a query: a whole kernel."""


class Variants:
    """Lessons that differ from each other as learnt ones do."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._seeds = tuple(seed_lessons().values())
        self._words = sorted({word for lesson in self._seeds for word in lesson.move.split()})

    def lesson(self) -> Lesson:
        """Return a new lesson."""
        one = self._random.choice(self._seeds)
        return replace(
            one,
            symptom=f"{one.symptom} {self._some_words(20)}",
            move=f"{self._some_words(50)} {one.move}",
            origin=LessonOrigin.USER,
            effect=self._random.gauss(0.1, 0.3),
            use_count=(uses := self._random.randrange(20)),
            failure_count=self._random.randint(0, uses),
        )

    def query(self) -> LessonQuery:
        """Return a query with findings, a text, and the code of a whole kernel."""
        one = self._random.choice(self._seeds)
        code = "\n".join(lesson.excerpt for lesson in self._random.sample(self._seeds, 20))
        return LessonQuery(
            language=self._random.choice(tuple(Language)),
            findings=tuple(self._random.sample(tuple(FindingKind), 2)),
            text=f"{one.symptom} {self._some_words(30)}",
            code=code[:_KERNEL_CHARS],
            expert=self._random.choice(("", "memory", "compute")),
            device="sm_90",
        )

    def _some_words(self, count: int) -> str:
        return " ".join(self._random.choices(self._words, k=count))


class TimedEmbedder(HashedEmbedder):
    """Notes how long each call takes."""

    def __init__(self) -> None:
        super().__init__()
        self.took_ms: list[float] = []

    def embed_now(self, passages: Sequence[Passage]) -> Vectors:
        """Embed, and note the time."""
        before_s = time.perf_counter()
        vectors = super().embed_now(passages)
        self.took_ms.append((time.perf_counter() - before_s) * 1e3)
        return vectors


async def measure(folder: Path, count: int, rounds: int) -> dict[str, Any]:
    """Return what was measured on a new store with `count` lessons."""
    url = f"sqlite:///{folder / 'generator.db'}"
    variants = Variants(seed=1)
    await _fill(url, variants, count)
    store, embedder = GeneratorStore(url), TimedEmbedder()
    library, build_s = await _started(store, embedder, variants.query())
    library, start_s = await _started(store, embedder, variants.query())
    calls = await _calls(library, embedder, variants, rounds)
    await library.close()
    await store.close()
    return {
        "lesson_count": count,
        **calls,
        "first_start_s": build_s,
        "start_s": start_s,
    }


async def _started(
    store: GeneratorStore, embedder: TimedEmbedder, query: LessonQuery
) -> tuple[ExperienceLibrary, float]:
    """Return a library that answered its first query, and the seconds until then."""
    before_s = time.perf_counter()
    library = ExperienceLibrary(store, embedder=embedder)
    await library.search(query)
    return library, time.perf_counter() - before_s


async def _calls(
    library: ExperienceLibrary, embedder: TimedEmbedder, variants: Variants, rounds: int
) -> dict[str, Any]:
    """Return how long the library's calls take, one after the other."""
    queries = [variants.query() for _ in range(rounds)]
    embedder.took_ms.clear()
    search_ms = [await _awaited_ms(library.search(q)) for q in queries]
    embedding_ms = list(embedder.took_ms)
    besides_ms = [call - own for call, own in zip(search_ms, embedding_ms, strict=True)]
    new = [variants.lesson() for _ in range(rounds)]
    insert_ms = [await _awaited_ms(library.add(x)) for x in new]
    (first, *_) = await library.lessons(limit=1)
    credit_ms = [
        await _awaited_ms(library.credit((first.id,), log_speedup=0.1, request_id=f"bench/{n}"))
        for n in range(rounds)
    ]
    return {
        "embedding_ms": _summary(embedding_ms),
        "search_besides_embedding_ms": _summary(besides_ms),
        "insert_durable_ms": _summary(insert_ms),
        "credit_durable_ms": _summary(credit_ms),
    }


async def _fill(url: str, variants: Variants, count: int) -> None:
    """Write lessons in one transaction: what is measured comes later."""
    store = GeneratorStore(url)
    library = ExperienceLibrary(store)
    have = len(await library.lessons(limit=count))
    new = [variants.lesson() for _ in range(count - have)]

    def write(connection: Any) -> None:
        revision = tables.advance(connection)
        for lesson in new:
            tables.insert(connection, lesson, revision=revision)

    await store.write(write)
    await store.close()


async def _awaited_ms(work: Awaitable[object]) -> float:
    before_s = time.perf_counter()
    await work
    return (time.perf_counter() - before_s) * 1e3


def _summary(values: Sequence[float]) -> dict[str, float]:
    hundredths = statistics.quantiles(values, n=100)
    return {"median": statistics.median(values), "p95": hundredths[94], "max": max(values)}


async def recall(name: str, folder: Path) -> dict[str, Any]:
    """Return the mean share of expected lessons among the first few, over a file's queries."""
    answered = await answers(_QUERIES / name, folder, limit=max(_RECALL_AT))
    return {
        "queries": len(answered),
        **{
            f"recall_at_{n}": statistics.mean(_share(one, n) for one in answered)
            for n in _RECALL_AT
        },
    }


def _share(one: Answered, count: int) -> float:
    return replace(one, found=one.found[:count]).recall


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lessons", type=int, default=10_000, help="lessons in the store")
    parser.add_argument("--rounds", type=int, default=300, help="searches and inserts measured")
    out_option(parser, NAME)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        measured = asyncio.run(measure(Path(name), options.lessons, options.rounds))
    for queries in ("held_out", "development"):
        with tempfile.TemporaryDirectory() as name:
            found = asyncio.run(recall(f"{queries}_queries.yaml", Path(name)))
        measured[f"{queries}_queries"] = found
    write_host_result(options.out, NAME, measured)
    print(json.dumps(measured, indent=1))


if __name__ == "__main__":
    main()
