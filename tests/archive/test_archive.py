"""The archive on a real SQLite file: durable, idempotent, shared by processes, resumable."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from archive_svc.archive import LocalArchive
from archive_svc.search import strategies
from kernel_foundry.domain.archive import (
    DEFAULT_STRATEGY,
    STRATEGY_NAMES,
    AddStatus,
    RunSpec,
    RunState,
)
from kernel_foundry.domain.candidate import Candidate, Operator
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.errors import (
    AlreadyExistsError,
    CorruptArchiveError,
    InvalidArgumentError,
    RunNotFoundError,
    StoreUnavailableError,
)

Make = Callable[..., tuple[Candidate, Evaluation]]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'runs.db'}"


@pytest.fixture
async def archive(url: str) -> AsyncIterator[LocalArchive]:
    opened = LocalArchive(url)
    yield opened
    await opened.close()


async def test_archived_evaluation_comes_back_whole(
    archive: LocalArchive, spec: RunSpec, make: Make
) -> None:
    await archive.create_run(spec)
    candidate, evaluation = make("a", median_ns=500.0, cell=(1, 2, 2))
    result = await archive.add("first", candidate, evaluation, request_id="1", cost_usd=0.25)
    assert (result.status, result.cell, result.is_best) == (AddStatus.NEW, (1, 2, 2), True)
    (archived,) = await archive.evaluations("first")
    assert (candidate, evaluation) == (archived.candidate, archived.evaluation)
    run = await archive.get_run("")
    assert (run.evaluation_count, run.best_speedup, run.cost_usd) == (1, 2.0, 0.25)


async def test_the_same_request_adds_once(archive: LocalArchive, spec: RunSpec, make: Make) -> None:
    await archive.create_run(spec)
    candidate, evaluation = make("a", median_ns=500.0)
    for _ in range(3):
        await archive.add("first", candidate, evaluation, request_id="1")
    assert (await archive.stats("first")).evaluation_count == 1
    other, verdict = make("b", median_ns=400.0)
    with pytest.raises(AlreadyExistsError):
        await archive.add("first", other, verdict, request_id="1")


async def test_state_survives_reopening(url: str, spec: RunSpec, make: Make) -> None:
    archive = LocalArchive(url)
    await archive.create_run(spec)
    for i in range(12):
        cell = (i % 4, i % 3, i % 2)
        await archive.add("first", *make(str(i), median_ns=900.0 - i, cell=cell), request_id=str(i))
    selected = [(await archive.select("first")).sequence for _ in range(3)]
    before = (
        await archive.elites("first"),
        await archive.stats("first"),
        await archive.gradient("first"),
        await archive.transitions("first"),
    )
    await archive.close()
    again = LocalArchive(url)
    assert before == (
        await again.elites("first"),
        await again.stats("first"),
        await again.gradient("first"),
        await again.transitions("first"),
    )
    assert (await again.select("first")).sequence > max(selected)
    await again.close()


async def test_two_archives_on_one_store_see_each_other(
    archive: LocalArchive, url: str, spec: RunSpec, make: Make
) -> None:
    await archive.create_run(spec)
    other = LocalArchive(url)
    for i in range(10):
        teller = archive if i % 2 else other
        await teller.add("first", *make(str(i), median_ns=900.0 - i), request_id=str(i))
    assert await archive.elites("first") == await other.elites("first")
    assert list(range(1, 11)) == [t.sequence for t in await other.evaluations("first")]
    await other.close()


async def test_concurrent_additions_of_two_archives_lose_nothing(
    archive: LocalArchive, url: str, spec: RunSpec, make: Make
) -> None:
    await archive.create_run(spec)
    other = LocalArchive(url)
    await asyncio.gather(
        *(
            (archive if i % 2 else other).add(
                "first", *make(str(i), median_ns=900.0 - i), request_id=str(i)
            )
            for i in range(40)
        )
    )
    archived = await archive.evaluations("first")
    assert list(range(1, 41)) == [t.sequence for t in archived]
    assert len({t.candidate.digest for t in archived}) == 40
    await other.close()


async def test_first_selections_are_seeds_then_parents_come(
    archive: LocalArchive, spec: RunSpec, make: Make
) -> None:
    await archive.create_run(replace(spec, strategy="gradient"))
    seeds = [await archive.select("first") for _ in range(4)]
    assert {Operator.SEED} == {s.operator for s in seeds}
    for i in range(4):
        await archive.add(
            "first", *make(str(i), median_ns=900.0 - 100 * i, cell=(i, 0, 0)), request_id=str(i)
        )
    later = [await archive.select("first") for _ in range(40)]
    assert {Operator.MUTATE, Operator.COMBINE} <= {s.operator for s in later}
    for selection in later:
        if selection.operator in (Operator.MUTATE, Operator.COMBINE):
            assert selection.parent is not None
            assert bool(selection.hint) == (selection.target is not None)
            if selection.target is not None:
                here, there = selection.parent.measures.cell, selection.target.cell
                assert max(abs(a - b) for a, b in zip(here, there, strict=True)) == 1
            assert selection.parent not in selection.inspirations
    assert any(selection.hint for selection in later)
    assert len(later) == len({s.sequence for s in later})


async def test_selection_is_deterministic_under_a_seed(
    tmp_path: Path, spec: RunSpec, make: Make
) -> None:
    histories = []
    for folder in ("a", "b"):
        archive = LocalArchive(f"sqlite:///{tmp_path / folder / 'runs.db'}")
        await archive.create_run(spec)
        for i in range(6):
            await archive.add(
                "first", *make(str(i), median_ns=900.0 - i, cell=(i % 4, 1, 0)), request_id=str(i)
            )
        histories.append([await archive.select("first") for _ in range(20)])
        await archive.close()
    assert histories[0] == histories[1]


async def test_failed_candidate_is_repaired_once_and_never_an_elite(
    archive: LocalArchive, spec: RunSpec, make: Make
) -> None:
    await archive.create_run(spec)
    broken, verdict = make("broken", outcome=EvaluationOutcome.COMPILE_ERROR)
    result = await archive.add("first", broken, verdict, request_id="1")
    assert (result.status, result.cell) == (AddStatus.NOT_ADDED, None)
    assert await archive.elites("first") == ()
    selections = [await archive.select("first") for _ in range(200)]
    repairs = [s for s in selections if s.operator is Operator.REPAIR]
    assert [broken.digest] == [s.parent.candidate.digest for s in repairs if s.parent]


async def test_remeasurement_updates_the_elite(
    archive: LocalArchive, spec: RunSpec, make: Make
) -> None:
    await archive.create_run(spec)
    candidate, lucky = make("a", median_ns=400.0)
    await archive.add("first", candidate, lucky, request_id="1")
    _, sober = make("a", median_ns=600.0)
    await archive.add("first", candidate, sober, request_id="2")
    (elite,) = await archive.elites("first")
    assert sober == elite.evaluation


async def test_run_names_are_checked_and_unique(archive: LocalArchive, spec: RunSpec) -> None:
    created = await archive.create_run(spec)
    assert created == await archive.create_run(spec)
    with pytest.raises(AlreadyExistsError):
        await archive.create_run(replace(spec, seed=2))
    with pytest.raises(InvalidArgumentError):
        await archive.create_run(replace(spec, name="../x"))
    with pytest.raises(InvalidArgumentError):
        await archive.create_run(replace(spec, name="b", strategy="magic"))
    with pytest.raises(RunNotFoundError):
        await archive.get_run("unknown")
    assert (await archive.finish_run("first", RunState.FINISHED)).state == RunState.FINISHED


async def test_bad_numbers_are_refused(archive: LocalArchive, spec: RunSpec, make: Make) -> None:
    await archive.create_run(spec)
    candidate, evaluation = make("a", median_ns=500.0)
    with pytest.raises(InvalidArgumentError):
        await archive.add(
            "first", candidate, replace(evaluation, fitness=float("nan")), request_id="1"
        )
    with pytest.raises(InvalidArgumentError):
        await archive.add("first", candidate, evaluation, request_id="")
    assert (await archive.stats("first")).evaluation_count == 0


async def test_newer_schema_and_foreign_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    await LocalArchive(f"sqlite:///{path}").close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(CorruptArchiveError, match="9999"):
        LocalArchive(f"sqlite:///{path}")
    (tmp_path / "text.db").write_text("no database at all, but long enough to be looked at" * 40)
    with pytest.raises(CorruptArchiveError):
        LocalArchive(f"sqlite:///{tmp_path / 'text.db'}")


async def test_unusable_folder_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailableError, match="folder"):
        LocalArchive(f"sqlite:///{tmp_path / 'file' / 'runs.db'}")


_TELLER = """
import asyncio, sys
sys.path.insert(0, {tests!r})
from tests.archive.conftest import make_candidate, make_evaluation
from archive_svc.search import strategies
from archive_svc.archive import LocalArchive

async def main():
    archive = LocalArchive({url!r})
    for i in range(100000):
        candidate = make_candidate(str(i))
        verdict = make_evaluation(candidate, median_ns=500.0)
        await archive.add("first", candidate, verdict, request_id=str(i))
        print(i, flush=True)

asyncio.run(main())
"""


async def test_nothing_acknowledged_is_lost_by_sigkill(url: str, spec: RunSpec) -> None:
    archive = LocalArchive(url)
    await archive.create_run(spec)
    await archive.close()
    script = _TELLER.format(tests=str(Path(__file__).parent), url=url)
    process = subprocess.Popen(  # noqa: ASYNC220  killed below, nothing else runs
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    acknowledged = [int(process.stdout.readline()) for _ in range(25)]
    os.kill(process.pid, signal.SIGKILL)
    acknowledged += [int(line) for line in process.stdout]
    process.stdout.close()
    process.wait()
    again = LocalArchive(url)
    archived = (await again.stats("first")).evaluation_count
    await again.close()
    assert archived in (len(acknowledged), len(acknowledged) + 1)


def test_named_strategies_are_known() -> None:
    assert tuple(strategies.STRATEGIES) == STRATEGY_NAMES
    assert DEFAULT_STRATEGY in STRATEGY_NAMES
