"""What every archive promises: the fake, the real one, and each behind a UNIX socket."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from archive_svc.archive import LocalArchive
from archive_svc.service import archive_service
from kernel_foundry.domain.archive import (
    AddStatus,
    LeaseHolder,
    RunBudget,
    RunEvent,
    RunSpec,
    RunState,
    Selection,
)
from kernel_foundry.domain.candidate import Candidate, KernelSource, Operator
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.measures import DIMENSIONS, LEVELS, Measures
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.steering import LONGEST_HINT, Steering, SteeringAction
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import (
    AlreadyExistsError,
    InvalidArgumentError,
    RunHeldError,
    RunNotFoundError,
)
from kernel_foundry.ports import Archive
from kernel_foundry.rpc.archive import RemoteArchive
from kernel_foundry.sdk.all_runs import all_runs
from kernel_foundry.testing.archive import FakeArchive
from kernel_foundry.testing.evaluator import FakeEvaluator
from tests.domain_values import run_spec

BUDGET = RunBudget(evaluations=9, minutes=0.5)


@pytest.fixture(params=["fake", "sqlite", "postgresql"])
async def archive(request: pytest.FixtureRequest, reach, tmp_path: Path) -> AsyncIterator[Archive]:
    implementation: Archive = FakeArchive()
    if request.param == "sqlite":
        implementation = LocalArchive(f"sqlite:///{tmp_path}/a.sqlite")
    elif request.param == "postgresql":
        implementation = LocalArchive(request.getfixturevalue("postgres_server").new_store())
    async with reach(implementation, archive_service, RemoteArchive) as reached:
        yield reached


@pytest.fixture
def spec(task: Task) -> RunSpec:
    return run_spec("first", task=task, models=("recipes",), seed=7)


def _candidate(label: str, *parents: Candidate) -> Candidate:
    source = KernelSource(language=Language.SYCL, device_code=f"// {label}", plan="pass")
    return Candidate(
        source=source,
        parents=tuple(parent.digest for parent in parents),
        operator=Operator.MUTATE if parents else Operator.SEED,
    )


async def _verdict(
    task: Task,
    candidate: Candidate,
    *,
    fitness: float = 0.5,
    cell: tuple[int, int, int] = (0, 0, 0),
) -> Evaluation:
    """Return a PASSED evaluation; the fake's verdicts are as whole as real ones."""
    request = EvaluationRequest(task=task, device="", source=candidate.source)
    evaluation = await FakeEvaluator().evaluate(request)
    return dataclasses.replace(
        evaluation,
        fitness=fitness,
        optimistic_fitness=fitness,
        measures=Measures(**dict(zip(DIMENSIONS, cell, strict=True))),
    )


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
        run.evaluation_count,
        run.best_speedup,
    )
    assert await archive.get_run("first") == run
    assert await archive.get_run("") == run
    assert await archive.create_run(spec) == run


async def test_no_name_stands_for_the_newest_run(archive: Archive, spec: RunSpec) -> None:
    await archive.create_run(spec)
    await archive.create_run(dataclasses.replace(spec, name="second"))
    candidate = _candidate("a")
    await archive.add("second", candidate, _failure(spec.task, candidate), request_id="1")
    assert (await archive.get_run("")).spec.name == "second"
    assert (await archive.stats("")).evaluation_count == 1
    assert len(await archive.evaluations("")) == 1
    async with aclosing(archive.watch("")) as events:
        assert (await anext(events)).sequence == 1


async def test_run_with_another_spec_is_refused(archive: Archive, spec: RunSpec) -> None:
    """A name stands for one spec."""
    await archive.create_run(spec)
    with pytest.raises(AlreadyExistsError) as caught:
        await archive.create_run(dataclasses.replace(spec, seed=8))
    assert caught.value.metadata["run"] == "first"


@pytest.mark.parametrize("name", ["", "missing"])
async def test_unknown_run_is_not_found(archive: Archive, name: str) -> None:
    """Every method that names a run says so."""
    for call in (
        archive.get_run,
        archive.select,
        archive.elites,
        archive.transitions,
        archive.gradient,
        archive.stats,
    ):
        with pytest.raises(RunNotFoundError):
            await call(name)
    with pytest.raises(RunNotFoundError):
        await anext(archive.watch(name))


async def test_runs_are_listed_newest_first(archive: Archive, spec: RunSpec) -> None:
    names = [f"run-{number}" for number in range(103)]
    for name in names:
        await archive.create_run(dataclasses.replace(spec, name=name))
    newest_first = names[::-1]
    assert [run.spec.name async for run in all_runs(archive)] == newest_first
    page = await archive.list_runs(limit=102, page_token=names[-1])
    assert [run.spec.name for run in page] == newest_first[1:]
    for wrong in ({"limit": 0}, {"page_token": "missing"}):
        with pytest.raises(InvalidArgumentError):
            await archive.list_runs(**wrong)


async def test_finished_run_says_so(archive: Archive, spec: RunSpec) -> None:
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


async def test_a_selection_may_be_made_by_another_strategy(archive: Archive, spec: RunSpec) -> None:
    await archive.create_run(spec)
    first = await archive.select("first", strategy="best_of_n")
    assert first.operator is Operator.SEED
    with pytest.raises(InvalidArgumentError, match="no_such"):
        await archive.select("first", strategy="no_such")


async def test_added_verdict_is_remembered(archive: Archive, spec: RunSpec) -> None:
    """A passed candidate opens its cell and becomes the best."""
    await archive.create_run(spec)
    candidate = _candidate("a")
    verdict = await _verdict(spec.task, candidate)
    result = await archive.add("first", candidate, verdict, request_id="1", cost_usd=0.25)
    assert verdict.measures is not None
    assert (AddStatus.NEW, verdict.measures.cell, True) == (
        result.status,
        result.cell,
        result.is_best,
    )
    (elite,) = await archive.elites("first")
    assert (candidate, verdict) == (elite.candidate, elite.evaluation)
    run = await archive.get_run("first")
    assert (1, 0.25, verdict.speedup) == (run.evaluation_count, run.cost_usd, run.best_speedup)
    stats = await archive.stats("first")
    assert (
        stats.evaluation_count,
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
    result = await archive.add("first", candidate, failure, request_id="1")
    assert (result.status, result.cell) == (AddStatus.NOT_ADDED, None)
    assert await archive.elites("first") == ()
    (archived,) = await archive.evaluations("first")
    assert (1, failure) == (archived.sequence, archived.evaluation)
    assert (await archive.stats("first")).objective_mean is None


async def test_the_same_request_adds_once(archive: Archive, spec: RunSpec) -> None:
    """A repeated addition changes nothing; the key of another candidate is refused."""
    await archive.create_run(spec)
    candidate = _candidate("a")
    verdict = await _verdict(spec.task, candidate)
    await archive.add("first", candidate, verdict, request_id="1")
    again = await archive.add("first", candidate, verdict, request_id="1")
    assert again.status is AddStatus.NOT_ADDED
    assert (await archive.stats("first")).evaluation_count == 1
    other = _candidate("b")
    with pytest.raises(AlreadyExistsError):
        await archive.add("first", other, await _verdict(spec.task, other), request_id="1")
    with pytest.raises(InvalidArgumentError) as caught:
        await archive.add("first", candidate, verdict, request_id="")
    assert caught.value.metadata["field"] == "request_id"


async def test_archived_evaluations_come_in_order(archive: Archive, spec: RunSpec) -> None:
    """`after` and `limit` cut the sequence, also beyond one page."""
    await archive.create_run(spec)
    for number in range(105):
        candidate = _candidate(str(number))
        failure = _failure(spec.task, candidate)
        await archive.add("first", candidate, failure, request_id=str(number))
    archived = await archive.evaluations("first", limit=1000)
    assert list(range(1, 106)) == [t.sequence for t in archived]
    part = await archive.evaluations("first", after=1, limit=2)
    assert [t.sequence for t in part] == [2, 3]
    assert await archive.evaluations("first", after=105) == ()
    with pytest.raises(InvalidArgumentError):
        await archive.evaluations("first", limit=-1)


async def test_concurrent_additions_are_all_kept(archive: Archive, spec: RunSpec) -> None:
    """Sixteen additions at once get sixteen sequence numbers."""
    await archive.create_run(spec)
    candidates = [_candidate(str(number)) for number in range(16)]
    verdicts = [await _verdict(spec.task, candidate) for candidate in candidates]
    await asyncio.gather(
        *(
            archive.add("first", candidate, verdict, request_id=candidate.digest)
            for candidate, verdict in zip(candidates, verdicts, strict=True)
        )
    )
    archived = await archive.evaluations("first")
    assert list(range(1, 17)) == [t.sequence for t in archived]
    assert {c.digest for c in candidates} == {t.candidate.digest for t in archived}


async def test_answered_selection_is_remembered(archive: Archive, spec: RunSpec) -> None:
    """An evaluation says which selection it answers, or none; 0 is a number as any other."""
    await archive.create_run(spec)
    selection = await archive.select("first")
    for number, answered in enumerate((selection.sequence, None)):
        candidate = _candidate(str(number))
        failure = _failure(spec.task, candidate)
        await archive.add("first", candidate, failure, request_id=str(number), selection=answered)
    archived = await archive.evaluations("first")
    assert [selection.sequence, None] == [t.selection for t in archived]
    islands = {island.name for island in (await archive.stats("first")).islands}
    assert {t.island for t in archived} <= islands
    assert selection.island in islands


@pytest.mark.parametrize("fitness", [float("nan"), float("inf"), -0.1])
async def test_impossible_fitness_is_refused(
    archive: Archive, spec: RunSpec, fitness: float
) -> None:
    """A fitness is a finite number from 0; nothing is stored otherwise."""
    await archive.create_run(spec)
    candidate = _candidate("a")
    verdict = dataclasses.replace(await _verdict(spec.task, candidate), fitness=fitness)
    with pytest.raises(InvalidArgumentError) as caught:
        await archive.add("first", candidate, verdict, request_id="1")
    assert caught.value.metadata["field"] == "evaluation.fitness"
    assert (await archive.stats("first")).evaluation_count == 0


async def test_verdict_on_another_candidate_is_refused(archive: Archive, spec: RunSpec) -> None:
    """A candidate that passed is the one that the verdict names."""
    await archive.create_run(spec)
    with pytest.raises(InvalidArgumentError) as caught:
        await archive.add(
            "first",
            _candidate("a"),
            await _verdict(spec.task, _candidate("b")),
            request_id="1",
        )
    assert caught.value.metadata["field"] == "evaluation.candidate"
    assert (await archive.stats("first")).evaluation_count == 0


async def test_parent_of_another_run_is_refused(archive: Archive, spec: RunSpec) -> None:
    """A parent was added before, to the same run."""
    await archive.create_run(spec)
    await archive.create_run(dataclasses.replace(spec, name="other"))
    parent = _candidate("parent")
    await archive.add("other", parent, _failure(spec.task, parent), request_id="1")
    child = _candidate("child", parent)
    with pytest.raises(InvalidArgumentError) as caught:
        await archive.add("first", child, _failure(spec.task, child), request_id="1")
    assert caught.value.metadata["field"] == "candidate.parents"
    assert (await archive.stats("first")).evaluation_count == 0
    await archive.add("other", child, _failure(spec.task, child), request_id="2")


async def test_elites_are_ranked_and_cut(archive: Archive, spec: RunSpec) -> None:
    """Best first; `limit` keeps the best."""
    await archive.create_run(spec)
    for number in range(LEVELS):
        candidate = _candidate(str(number))
        verdict = await _verdict(
            spec.task, candidate, fitness=0.3 + number / 10, cell=(number, 0, 0)
        )
        await archive.add("first", candidate, verdict, request_id=str(number))
    elites = await archive.elites("first")
    assert [e.measures.cell for e in elites] == [(3, 0, 0), (2, 0, 0), (1, 0, 0), (0, 0, 0)]
    assert elites[:2] == await archive.elites("first", limit=2)
    islands = {island.name for island in (await archive.stats("first")).islands}
    assert {e.island for e in elites} <= islands


async def test_transition_goes_from_parent_to_child(archive: Archive, spec: RunSpec) -> None:
    """Every archived child of an archived parent is one, also a failed child."""
    await archive.create_run(spec)
    parent = _candidate("parent")
    better, broken = _candidate("better", parent), _candidate("broken", parent)
    verdicts = (
        (parent, await _verdict(spec.task, parent, fitness=0.5)),
        (better, await _verdict(spec.task, better, fitness=0.75, cell=(1, 0, 0))),
        (broken, _failure(spec.task, broken)),
    )
    for candidate, verdict in verdicts:
        await archive.add("first", candidate, verdict, request_id=candidate.digest)
    first, second = await archive.transitions("first")
    assert (2, parent.digest, better.digest) == (first.sequence, first.parent, first.child)
    assert (first.parent_cell, first.child_cell) == ((0, 0, 0), (1, 0, 0))
    assert (first.gain, first.outcome) == (0.25, "passed")
    assert (second.sequence, second.child_cell, second.outcome) == (3, None, "compile_error")
    assert second.gain == -0.5
    assert (second,) == await archive.transitions("first", after=2)
    assert (first,) == await archive.transitions("first", limit=1)
    with pytest.raises(InvalidArgumentError):
        await archive.transitions("first", after=-1)


async def test_gradient_covers_the_grid_of_each_island(archive: Archive, spec: RunSpec) -> None:
    """All cells, with the elites where they stand and no confidence before anything is added."""
    await archive.create_run(spec)
    untouched = await archive.gradient("first")
    islands = [island.name for island in (await archive.stats("first")).islands]
    assert [name for name in islands for _ in range(LEVELS**3)] == [c.island for c in untouched]
    assert len({(c.island, c.cell) for c in untouched}) == len(untouched)
    assert {0.0} == {c.confidence for c in untouched}
    candidate = _candidate("a")
    verdict = await _verdict(spec.task, candidate, cell=(1, 2, 3))
    await archive.add("first", candidate, verdict, request_id="1")
    held = {(c.cell, c.elite) for c in await archive.gradient("first") if c.elite}
    assert held == {((1, 2, 3), candidate.digest)}


async def _next_events(archive: Archive, *, after: int, count: int) -> list[RunEvent]:
    """Return the next `count` events of the run, then stop watching."""
    async with aclosing(archive.watch("first", after=after)) as events:
        return [await anext(events) for _ in range(count)]


async def test_watcher_sees_what_was_added_and_what_comes(archive: Archive, spec: RunSpec) -> None:
    """The past, then the present, then the end of the run; a cut stream goes on anywhere."""
    await archive.create_run(spec)

    async def add(number: int) -> None:
        candidate = _candidate(str(number))
        failure = _failure(spec.task, candidate)
        await archive.add("first", candidate, failure, request_id=str(number))

    await add(1)
    async with asyncio.timeout(20), aclosing(archive.watch("first")) as events:
        seen = [await anext(events)]
        for number in (2, 3):
            event, _ = await asyncio.gather(anext(events), add(number))
            seen.append(event)
        end, _ = await asyncio.gather(anext(events), archive.finish_run("first", RunState.FINISHED))
        seen.append(end)
        assert [event async for event in events] == []
    archived = await archive.evaluations("first")
    assert [RunEvent(sequence=t.sequence, archived=t) for t in archived] == seen[:-1]
    assert RunEvent(sequence=3, state=RunState.FINISHED) == seen[-1]
    again = await _next_events(archive, after=1, count=3)
    assert seen[1:] == again


async def test_watcher_may_leave(archive: Archive, spec: RunSpec) -> None:
    """Leaving a run that goes on ends the stream at once, and the archive goes on."""
    await archive.create_run(spec)
    candidate = _candidate("a")
    await archive.add("first", candidate, _failure(spec.task, candidate), request_id="1")
    async with asyncio.timeout(20):
        (event,) = await _next_events(archive, after=0, count=1)
    assert event.sequence == 1
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await _next_events(archive, after=1, count=1)
    assert (await archive.stats("first")).evaluation_count == 1


async def test_watch_from_a_negative_number_is_refused(archive: Archive, spec: RunSpec) -> None:
    """Numbers start at 1; 0 asks for all."""
    await archive.create_run(spec)
    with pytest.raises(InvalidArgumentError):
        await anext(archive.watch("first", after=-1))


async def test_an_assignment_can_be_given_back(archive: Archive, spec: RunSpec) -> None:
    """Once or twice; also one that was answered, or never made: there is nothing to lose."""
    await archive.create_run(spec)
    selection = await archive.select("first")
    for number in (selection.sequence, selection.sequence, 10_000):
        await archive.drop_selection("first", number)
    with pytest.raises(RunNotFoundError):
        await archive.drop_selection("no such run", 0)


def _holder(token: str, *, process_id: int = 1 << 23) -> LeaseHolder:
    """Return a loop on a host that nobody can look into."""
    return LeaseHolder(
        token=token, host="elsewhere", process_id=process_id, process_start=5, kernel="another"
    )


async def test_one_loop_alone_holds_a_run(archive: Archive, spec: RunSpec) -> None:
    await archive.create_run(spec)
    first, second = _holder("1"), _holder("2")
    for _ in range(2):
        assert (await archive.hold_run("first", first, BUDGET)).state is RunState.RUNNING
    with pytest.raises(RunHeldError) as refused:
        await archive.hold_run("first", second, BUDGET)
    assert refused.value.metadata["run"] == "first"
    assert (await archive.finish_run("first", RunState.FINISHED, holder=second)).state is (
        RunState.RUNNING
    )
    assert (await archive.finish_run("first", RunState.FINISHED, holder=first)).state is (
        RunState.FINISHED
    )
    again = await archive.hold_run("first", second, BUDGET)
    assert (again.state, again.budget) == (
        RunState.RUNNING,
        BUDGET,
    )
    with pytest.raises(RunNotFoundError):
        await archive.hold_run("nothing", first, BUDGET)


async def test_a_deleted_run_is_gone_and_its_name_free(archive: Archive, spec: RunSpec) -> None:
    """Another run of the name starts from nothing, also for whoever knew the first one."""
    await archive.create_run(spec)
    await archive.create_run(dataclasses.replace(spec, name="second"))
    selection = await archive.select("first")
    candidate = _candidate("a")
    verdict = await _verdict(spec.task, candidate)
    await archive.add("first", candidate, verdict, request_id="1", selection=selection.sequence)
    await archive.hold_run("first", _holder("1"), BUDGET)
    with pytest.raises(RunHeldError):
        await archive.delete_run("first")
    await archive.finish_run("first", RunState.FINISHED)
    await archive.delete_run("first")
    assert [run.spec.name for run in await archive.list_runs()] == ["second"]
    for question in (archive.get_run, archive.select, archive.elites, archive.delete_run):
        with pytest.raises(RunNotFoundError):
            await question("first")
    with pytest.raises(RunNotFoundError):
        await archive.add("first", candidate, verdict, request_id="2")
    await archive.create_run(spec)
    assert await archive.elites("first") == ()
    result = await archive.add("first", candidate, verdict, request_id="1")
    assert result.status is AddStatus.NEW
    assert [run.evaluation_count for run in await archive.list_runs()] == [1, 0]


async def test_steering_is_kept_in_order(archive: Archive, spec: RunSpec) -> None:
    """Every kind, with its parts; what was asked last, asked again, is one event."""
    await archive.create_run(spec)
    cell = Measures(memory=1, algorithm=2, synchronization=0)
    asked = (
        Steering(action=SteeringAction.PAUSE),
        Steering(action=SteeringAction.RESUME),
        Steering(action=SteeringAction.HINT, text="use wide loads\n```"),
        Steering(action=SteeringAction.PIN, cell=cell),
        Steering(action=SteeringAction.BAN, cell=cell),
        Steering(action=SteeringAction.RELEASE),
        Steering(action=SteeringAction.INJECT, source=_candidate("mine").source),
        Steering(action=SteeringAction.STOP),
    )
    for steering in asked:
        event = await archive.steer("first", steering)
    assert await archive.steer("first", asked[-1]) == event
    events = await archive.steering("first")
    assert tuple(e.steering for e in events) == asked
    assert [e.sequence for e in events] == list(range(1, len(asked) + 1))
    assert await archive.steering("first", after=6, limit=1) == events[6:7]
    assert await archive.steering("first", after=8) == ()
    await archive.delete_run("first")
    await archive.create_run(spec)
    assert await archive.steering("first") == ()


@pytest.mark.parametrize(
    "steering",
    [
        Steering(action=SteeringAction.HINT, text="x" * (LONGEST_HINT + 1)),
        Steering(action=SteeringAction.HINT, text="a\0b"),
        Steering(action=SteeringAction.PAUSE, text="why"),
        Steering(action=SteeringAction.PIN),
        Steering(
            action=SteeringAction.STOP, cell=Measures(memory=0, algorithm=0, synchronization=0)
        ),
        Steering(action=SteeringAction.INJECT),
        Steering(
            action=SteeringAction.INJECT,
            source=KernelSource(language=Language.CUDA, device_code="// other", plan="pass"),
        ),
    ],
    ids=lambda steering: steering.action.value,
)
async def test_steering_that_means_nothing_is_refused(
    archive: Archive, spec: RunSpec, steering: Steering
) -> None:
    """Nothing of it is kept."""
    await archive.create_run(spec)
    with pytest.raises(InvalidArgumentError):
        await archive.steer("first", steering)
    assert await archive.steering("first") == ()


async def test_selections_heed_what_was_asked(archive: Archive, spec: RunSpec) -> None:
    """From the next one on: the hint, the pinned cell, and no elite of a banned cell."""
    await archive.create_run(spec)
    elites = {}
    for number, fitness in enumerate((0.9, 0.5)):
        candidate = _candidate(str(number))
        verdict = await _verdict(spec.task, candidate, fitness=fitness, cell=(number, 0, 0))
        await archive.add("first", candidate, verdict, request_id=str(number))
        assert verdict.measures is not None
        elites[number] = verdict.measures
    empty = Measures(memory=3, algorithm=3, synchronization=3)

    async def selected() -> list[Selection]:
        return [await archive.select("first") for _ in range(40)]

    await archive.steer("first", Steering(action=SteeringAction.HINT, text="wide loads"))
    assert {s.user_hint for s in await selected()} == {"wide loads"}
    await archive.steer("first", Steering(action=SteeringAction.BAN, cell=elites[0]))
    parents = {s.parent.measures for s in await selected() if s.parent is not None}
    assert parents == {elites[1]}
    await archive.steer("first", Steering(action=SteeringAction.PIN, cell=elites[0]))
    pinned = [s for s in await selected() if s.operator is not Operator.SEED]
    assert {s.parent.measures for s in pinned if s.parent is not None} == {elites[0]}
    assert {s.target for s in pinned} == {None}
    await archive.steer("first", Steering(action=SteeringAction.PIN, cell=empty))
    aimed = [s for s in await selected() if s.operator in (Operator.MUTATE, Operator.COMBINE)]
    assert {s.target for s in aimed} == {empty}
    await archive.steer("first", Steering(action=SteeringAction.RELEASE))
    await archive.steer("first", Steering(action=SteeringAction.HINT))
    assert {s.user_hint for s in await selected()} == {""}
    assert empty not in {s.target for s in await selected()}
