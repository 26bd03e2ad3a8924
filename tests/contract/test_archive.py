"""What every archive promises: on each database, behind a UNIX socket, and by a gateway."""

import asyncio
import dataclasses
from contextlib import aclosing

import pytest

from kernel_foundry.domain.archive import (
    AddStatus,
    LeaseHolder,
    RunBudget,
    RunEvent,
    RunSpec,
    RunState,
)
from kernel_foundry.domain.candidate import Candidate, Operator
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.measures import LEVELS
from kernel_foundry.domain.steering import Steering, SteeringAction
from kernel_foundry.domain.task import Task
from kernel_foundry.errors import (
    AlreadyExistsError,
    InvalidArgumentError,
    RunHeldError,
    RunNotFoundError,
)
from kernel_foundry.ports import Archive
from kernel_foundry.sdk.archive_pages import all_runs
from tests.contract.archive_entries import candidate_of, verdict_on

BUDGET = RunBudget(evaluations=9, minutes=0.5)


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
    candidate = candidate_of("a")
    await archive.add("second", candidate, _failure(spec.task, candidate), request_id="1")
    assert (await archive.get_run("")).spec.name == "second"
    assert (await archive.stats("")).evaluation_count == 1
    assert len(await archive.evaluations("")) == 1
    async with aclosing(archive.watch("")) as events:
        assert (await anext(events)).sequence == 1


async def test_run_with_another_spec_is_refused(archive: Archive, spec: RunSpec) -> None:
    """A name stands for one spec."""
    await archive.create_run(spec)
    with pytest.raises(AlreadyExistsError, match=f"seed {spec.seed} there, 8 asked for") as caught:
        await archive.create_run(dataclasses.replace(spec, seed=8))
    assert caught.value.metadata["run"] == "first"


async def test_what_changes_a_run_has_to_name_it(archive: Archive, spec: RunSpec) -> None:
    """A forgotten name is no reason to change the newest run."""
    run = await archive.create_run(spec)
    candidate = candidate_of("a")
    calls = {
        "name": (
            archive.hold_run("", _holder("1"), BUDGET),
            archive.finish_run("", RunState.FINISHED),
            archive.delete_run(""),
            archive.rename_run("", "other"),
        ),
        "run": (
            archive.steer("", Steering(action=SteeringAction.PAUSE)),
            archive.select(""),
            archive.drop_selection("", 0),
            archive.add("", candidate, _failure(spec.task, candidate), request_id="1"),
        ),
    }
    for field, changes in calls.items():
        for change in changes:
            with pytest.raises(InvalidArgumentError) as refused:
                await change
            assert refused.value.metadata["field"] == field
    assert await archive.get_run("") == run
    assert await archive.steering("first") == ()


@pytest.mark.parametrize("name", ["", "missing"])
async def test_unknown_run_is_not_found(archive: Archive, name: str) -> None:
    """Every method that names a run says so."""
    for call in (
        archive.get_run,
        archive.elites,
        archive.transitions,
        archive.gradient,
        archive.stats,
    ):
        with pytest.raises(RunNotFoundError):
            await call(name)
    with pytest.raises(RunNotFoundError):
        await archive.select("missing")
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
    candidate = candidate_of("a")
    verdict = await verdict_on(spec.task, candidate)
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


async def test_a_run_that_has_ended_is_known_by_its_winner(archive: Archive, spec: RunSpec) -> None:
    """The best of a search owes something to luck: its winner is what was measured again."""
    await archive.create_run(spec)
    shown = []
    rounds = [("a", 0.5), ("b", 0.9), ("c", 0.6), ("a", 0.5), ("c", 0.6)]
    for place, (label, fitness) in enumerate(rounds):
        candidate = candidate_of(label)
        verdict = await verdict_on(spec.task, candidate, fitness=fitness)
        time_ns = 1e6 / fitness
        times = tuple(
            dataclasses.replace(
                w,
                timing=dataclasses.replace(
                    w.timing, median_ns=time_ns, ci95_ns=(time_ns, time_ns), samples_ns=(time_ns,)
                ),
            )
            for w in verdict.workloads
            if w.timing is not None
        )
        verdict = dataclasses.replace(verdict, workloads=times, is_final=place > 2)
        await archive.add("first", candidate, verdict, request_id=str(place))
        shown.append(verdict.speedup)
        (run,) = await archive.list_runs()
        assert run.best_speedup == shown[(0, 1, 1, 3, 4)[place]]
    assert len(set(shown)) == 3


async def test_failure_is_kept_but_is_no_elite(archive: Archive, spec: RunSpec) -> None:
    """A failed candidate counts, and has no cell."""
    await archive.create_run(spec)
    candidate = candidate_of("a")
    failure = _failure(spec.task, candidate)
    result = await archive.add("first", candidate, failure, request_id="1")
    assert (result.status, result.cell) == (AddStatus.NOT_ADDED, None)
    assert await archive.elites("first") == ()
    (archived,) = await archive.evaluations("first")
    assert (1, failure) == (archived.sequence, archived.evaluation)
    assert (await archive.stats("first")).objective_mean is None


async def test_the_same_request_adds_once(archive: Archive, spec: RunSpec) -> None:
    """The first verdict stays, whatever comes with its key; another candidate's is refused."""
    await archive.create_run(spec)
    candidate = candidate_of("a")
    verdict = await verdict_on(spec.task, candidate)
    await archive.add("first", candidate, verdict, request_id="1")
    again = await archive.add("first", candidate, verdict, request_id="1")
    assert again.status is AddStatus.NOT_ADDED
    assert (await archive.stats("first")).evaluation_count == 1
    better = await verdict_on(spec.task, candidate, fitness=2 * verdict.fitness)
    late = await archive.add("first", candidate, better, request_id="1")
    assert late.status is AddStatus.NOT_ADDED
    (archived,) = await archive.evaluations("first")
    assert archived.evaluation == verdict
    (elite,) = await archive.elites("first")
    assert elite.fitness == verdict.fitness
    other = candidate_of("b")
    with pytest.raises(AlreadyExistsError):
        await archive.add("first", other, await verdict_on(spec.task, other), request_id="1")
    with pytest.raises(InvalidArgumentError) as caught:
        await archive.add("first", candidate, verdict, request_id="")
    assert caught.value.metadata["field"] == "request_id"


async def test_archived_evaluations_come_in_order(archive: Archive, spec: RunSpec) -> None:
    """`after` and `limit` cut the sequence, also beyond one page."""
    await archive.create_run(spec)
    for number in range(105):
        candidate = candidate_of(str(number))
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
    candidates = [candidate_of(str(number)) for number in range(16)]
    verdicts = [await verdict_on(spec.task, candidate) for candidate in candidates]
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
        candidate = candidate_of(str(number))
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
    candidate = candidate_of("a")
    verdict = dataclasses.replace(await verdict_on(spec.task, candidate), fitness=fitness)
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
            candidate_of("a"),
            await verdict_on(spec.task, candidate_of("b")),
            request_id="1",
        )
    assert caught.value.metadata["field"] == "evaluation.candidate"
    assert (await archive.stats("first")).evaluation_count == 0


async def test_parent_of_another_run_is_refused(archive: Archive, spec: RunSpec) -> None:
    """A parent was added before, to the same run."""
    await archive.create_run(spec)
    await archive.create_run(dataclasses.replace(spec, name="other"))
    parent = candidate_of("parent")
    await archive.add("other", parent, _failure(spec.task, parent), request_id="1")
    child = candidate_of("child", parent)
    with pytest.raises(InvalidArgumentError) as caught:
        await archive.add("first", child, _failure(spec.task, child), request_id="1")
    assert caught.value.metadata["field"] == "candidate.parents"
    assert (await archive.stats("first")).evaluation_count == 0
    await archive.add("other", child, _failure(spec.task, child), request_id="2")


async def test_elites_are_ranked_and_cut(archive: Archive, spec: RunSpec) -> None:
    """Best first; `limit` keeps the best."""
    await archive.create_run(spec)
    for number in range(LEVELS):
        candidate = candidate_of(str(number))
        verdict = await verdict_on(
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
    parent = candidate_of("parent")
    better, broken = candidate_of("better", parent), candidate_of("broken", parent)
    verdicts = (
        (parent, await verdict_on(spec.task, parent, fitness=0.5)),
        (better, await verdict_on(spec.task, better, fitness=0.75, cell=(1, 0, 0))),
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
    candidate = candidate_of("a")
    verdict = await verdict_on(spec.task, candidate, cell=(1, 2, 3))
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
        candidate = candidate_of(str(number))
        failure = _failure(spec.task, candidate)
        await archive.add("first", candidate, failure, request_id=str(number))

    await add(1)
    async with asyncio.timeout(280), aclosing(archive.watch("first")) as events:
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
    candidate = candidate_of("a")
    await archive.add("first", candidate, _failure(spec.task, candidate), request_id="1")
    async with asyncio.timeout(280):
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
    candidate = candidate_of("a")
    verdict = await verdict_on(spec.task, candidate)
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


async def test_a_renamed_run_is_found_by_its_new_name_alone(
    archive: Archive, spec: RunSpec
) -> None:
    """With all that it has; a run that a loop holds, and a name that is taken, are refused."""
    await archive.create_run(spec)
    await archive.create_run(dataclasses.replace(spec, name="second"))
    candidate = candidate_of("a")
    await archive.add("first", candidate, _failure(spec.task, candidate), request_id="1")
    with pytest.raises(AlreadyExistsError):
        await archive.rename_run("first", "second")
    with pytest.raises(InvalidArgumentError):
        await archive.rename_run("first", "../x")
    await archive.hold_run("first", _holder("1"), BUDGET)
    with pytest.raises(RunHeldError):
        await archive.rename_run("first", "third")
    await archive.finish_run("first", RunState.FINISHED)
    renamed = await archive.rename_run("first", "third")
    assert renamed.spec == dataclasses.replace(spec, name="third")
    assert (await archive.get_run("third")).evaluation_count == 1
    assert len(await archive.evaluations("third")) == 1
    for question in (archive.get_run, archive.stats, archive.select):
        with pytest.raises(RunNotFoundError):
            await question("first")
    fresh = await archive.create_run(spec)
    assert fresh.evaluation_count == 0
    assert (await archive.stats("first")).evaluation_count == 0
