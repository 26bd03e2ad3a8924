"""The archive on a real SQLite file: durable, idempotent, shared by processes, resumable."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from archive_svc.archive import LocalArchive
from archive_svc.search import strategies
from kernel_foundry.domain.archive import (
    DEFAULT_STRATEGY,
    STRATEGY_NAMES,
    RunSpec,
    RunState,
)
from kernel_foundry.domain.candidate import Candidate, Operator
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.errors import (
    AlreadyExistsError,
    InvalidArgumentError,
    RunNotFoundError,
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


def test_named_strategies_are_known() -> None:
    assert tuple(strategies.STRATEGIES) == STRATEGY_NAMES
    assert DEFAULT_STRATEGY in STRATEGY_NAMES
