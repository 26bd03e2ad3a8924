"""What every archive promises: the fake, the real one, and each behind a UNIX socket."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from archive_svc.archive import Archive as LocalArchive
from archive_svc.service import archive_service
from kernel_foundry.domain.archive import AddStatus, RunSpec, RunState
from kernel_foundry.domain.candidate import Candidate, KernelSource, Operator
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import AlreadyExistsError, InvalidArgumentError, RunNotFoundError
from kernel_foundry.ports import Archive
from kernel_foundry.rpc.archive import RemoteArchive
from kernel_foundry.testing.archive import FakeArchive
from kernel_foundry.testing.evaluator import FakeEvaluator


@pytest.fixture(params=["fake", "local"])
async def archive(request: pytest.FixtureRequest, reach, tmp_path: Path) -> AsyncIterator[Archive]:
    """Each implementation, reached each way."""
    implementation = (
        FakeArchive() if request.param == "fake" else LocalArchive(f"sqlite:///{tmp_path}/a.sqlite")
    )
    async with reach(implementation, archive_service, RemoteArchive) as reached:
        yield reached


@pytest.fixture
def spec(task: Task) -> RunSpec:
    """A run."""
    return RunSpec(
        name="first",
        task=task,
        language=Language.SYCL,
        device="fake:0",
        models=("recipes",),
        strategy="fitness",
        seed=7,
    )


def _candidate(label: str) -> Candidate:
    source = KernelSource(language=Language.SYCL, device_code=f"// {label}\n", plan="pass\n")
    return Candidate(source=source)


async def _verdict(task: Task, candidate: Candidate, *, fitness: float = 0.5) -> Evaluation:
    """Return a PASSED evaluation; the fake's verdicts are as whole as real ones."""
    source = candidate.source
    text = f"```sycl\n{source.device_code}```\n```python\n{source.plan}```\n"
    evaluation = await FakeEvaluator().evaluate(EvaluationRequest(task=task, device="", text=text))
    return dataclasses.replace(evaluation, fitness=fitness)


def _failure(task: Task, candidate: Candidate) -> Evaluation:
    return Evaluation(
        candidate=candidate.digest,
        task=task.digest,
        device="fake:0",
        outcome=EvaluationOutcome.COMPILE_ERROR,
    )


async def test_created_run_is_found(archive: Archive, spec: RunSpec) -> None:
    """A new run is empty, running and found by name and as the newest."""
    run = await archive.create_run(spec)
    assert (spec, RunState.RUNNING, 0, None) == (
        run.spec,
        run.state,
        run.told_count,
        run.best_speedup,
    )
    assert await archive.get_run("first") == run
    assert await archive.get_run("") == run
    assert await archive.create_run(spec) == run


async def test_run_with_another_spec_is_refused(archive: Archive, spec: RunSpec) -> None:
    """A name stands for one spec."""
    await archive.create_run(spec)
    with pytest.raises(AlreadyExistsError) as caught:
        await archive.create_run(dataclasses.replace(spec, seed=8))
    assert caught.value.metadata["run"] == "first"


@pytest.mark.parametrize("name", ["", "missing"])
async def test_unknown_run_is_not_found(archive: Archive, name: str) -> None:
    """Every method that names a run says so."""
    for call in (archive.get_run, archive.select, archive.elites, archive.stats):
        with pytest.raises(RunNotFoundError):
            await call(name)


async def test_runs_are_listed_newest_first(archive: Archive, spec: RunSpec) -> None:
    """All of them, also beyond one page."""
    names = [f"run-{number}" for number in range(103)]
    for name in names:
        await archive.create_run(dataclasses.replace(spec, name=name))
    assert names[::-1] == [run.spec.name for run in await archive.list_runs()]


async def test_finished_run_says_so(archive: Archive, spec: RunSpec) -> None:
    """The state is kept."""
    await archive.create_run(spec)
    await archive.finish_run("first", RunState.FINISHED)
    assert (await archive.get_run("first")).state is RunState.FINISHED


async def test_first_selections_are_distinct_seeds(archive: Archive, spec: RunSpec) -> None:
    """Without elites there is nothing but seeds, and no two assignments are equal."""
    await archive.create_run(spec)
    first, second = await archive.select("first"), await archive.select("first")
    assert first.operator is second.operator is Operator.SEED
    assert first.parent is None
    assert first != second


async def test_told_verdict_is_remembered(archive: Archive, spec: RunSpec) -> None:
    """A passed candidate opens its cell and becomes the best."""
    await archive.create_run(spec)
    candidate = _candidate("a")
    verdict = await _verdict(spec.task, candidate)
    result = await archive.tell("first", candidate, verdict, request_id="1", cost_usd=0.25)
    assert verdict.measures is not None
    assert (AddStatus.NEW, verdict.measures.cell, True) == (
        result.status,
        result.cell,
        result.is_best,
    )
    (elite,) = await archive.elites("first")
    assert (candidate, verdict) == (elite.candidate, elite.evaluation)
    run = await archive.get_run("first")
    assert (1, 0.25, verdict.speedup) == (run.told_count, run.cost_usd, run.best_speedup)
    stats = await archive.stats("first")
    assert (
        stats.told_count,
        stats.elite_count,
        stats.coverage,
        stats.objective_max,
    ) == (1, 1, 1 / 64, 0.5)
    assert [(o.outcome, o.count) for o in stats.outcomes] == [("passed", 1)]


async def test_failure_is_kept_but_is_no_elite(archive: Archive, spec: RunSpec) -> None:
    """A failed candidate counts, and has no cell."""
    await archive.create_run(spec)
    candidate = _candidate("a")
    failure = _failure(spec.task, candidate)
    result = await archive.tell("first", candidate, failure, request_id="1")
    assert (result.status, result.cell) == (AddStatus.NOT_ADDED, None)
    assert await archive.elites("first") == ()
    (told,) = await archive.evaluations("first")
    assert (1, failure) == (told.sequence, told.evaluation)
    assert (await archive.stats("first")).objective_mean is None


async def test_same_request_tells_once(archive: Archive, spec: RunSpec) -> None:
    """A repeated tell changes nothing; the key of another candidate is refused."""
    await archive.create_run(spec)
    candidate = _candidate("a")
    verdict = await _verdict(spec.task, candidate)
    await archive.tell("first", candidate, verdict, request_id="1")
    again = await archive.tell("first", candidate, verdict, request_id="1")
    assert again.status is AddStatus.NOT_ADDED
    assert (await archive.stats("first")).told_count == 1
    with pytest.raises(AlreadyExistsError):
        await archive.tell("first", _candidate("b"), verdict, request_id="1")
    with pytest.raises(InvalidArgumentError) as caught:
        await archive.tell("first", candidate, verdict, request_id="")
    assert caught.value.metadata["field"] == "request_id"


async def test_told_evaluations_come_in_order(archive: Archive, spec: RunSpec) -> None:
    """`after` and `limit` cut the sequence, also beyond one page."""
    await archive.create_run(spec)
    for number in range(105):
        candidate = _candidate(str(number))
        failure = _failure(spec.task, candidate)
        await archive.tell("first", candidate, failure, request_id=str(number))
    told = await archive.evaluations("first", limit=1000)
    assert list(range(1, 106)) == [t.sequence for t in told]
    part = await archive.evaluations("first", after=1, limit=2)
    assert [t.sequence for t in part] == [2, 3]
    assert await archive.evaluations("first", after=105) == ()
    with pytest.raises(InvalidArgumentError):
        await archive.evaluations("first", limit=-1)


async def test_concurrent_tells_are_all_kept(archive: Archive, spec: RunSpec) -> None:
    """Sixteen tells at once get sixteen sequence numbers."""
    await archive.create_run(spec)
    candidates = [_candidate(str(number)) for number in range(16)]
    verdicts = [await _verdict(spec.task, candidate) for candidate in candidates]
    await asyncio.gather(
        *(
            archive.tell("first", candidate, verdict, request_id=candidate.digest)
            for candidate, verdict in zip(candidates, verdicts, strict=True)
        )
    )
    told = await archive.evaluations("first")
    assert list(range(1, 17)) == [t.sequence for t in told]
    assert {c.digest for c in candidates} == {t.candidate.digest for t in told}
