"""The store's contract, on a SQLite file and on a real PostgreSQL server."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from archive_svc.store.rows import NewEvaluation, RunRow
from archive_svc.store.schema import METADATA, SCHEMA
from archive_svc.store.store import Store
from kernel_foundry.domain.archive import RunSpec, RunState
from kernel_foundry.domain.candidate import Candidate, KernelSource, Operator
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.language import Language
from kernel_foundry.domain.launch_facts import LaunchFacts
from kernel_foundry.domain.plain import to_json
from kernel_foundry.domain.steering import Steering, SteeringAction
from kernel_foundry.errors import (
    AlreadyExistsError,
    CorruptArchiveError,
    InvalidArgumentError,
    RunNotFoundError,
)
from kernel_foundry.sql.engine import open_engine
from tests.archive.conftest import make_candidate, make_evaluation
from tests.domain_values import run_spec

Make = Callable[..., tuple[Candidate, Evaluation]]


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    opened = Store(store_url)
    yield opened
    opened.close()


@pytest.fixture
def run(store: Store, spec: RunSpec) -> RunRow:
    assert store.insert_run(spec)
    return found(store, spec.name)


def found(store: Store, name: str) -> RunRow:
    row = store.find_run(name)
    assert row is not None
    return row


def new_evaluation(
    label: str, *, parent: str = "", median_ns: float = 500.0, **verdict: object
) -> NewEvaluation:
    """Return an evaluation whose request_id and digest depend on `label` alone."""
    candidate = make_candidate(label, parent=parent, operator=Operator.MUTATE)
    evaluation = make_evaluation(candidate, median_ns=median_ns, **verdict)  # type: ignore[arg-type]
    return NewEvaluation(request_id=label, candidate=candidate, evaluation=evaluation)


def failed(label: str, cell: tuple[int, int, int] = (0, 0, 0)) -> NewEvaluation:
    candidate = make_candidate(label)
    evaluation = make_evaluation(candidate, outcome=EvaluationOutcome.WRONG_RESULT, cell=cell)
    return NewEvaluation(request_id=label, candidate=candidate, evaluation=evaluation)


def test_an_evaluation_comes_back_whole(store: Store, run: RunRow) -> None:
    archived = replace(
        new_evaluation("a", cell=(1, 2, 3)), cost_usd=0.25, island="memory", selection=7
    )
    result, is_repeat = store.add(run.id, archived)
    assert not is_repeat
    assert [result] == store.results(run.id, 0)
    assert (result.sequence, result.cell, result.passed) == (1, (1, 2, 3), True)
    assert (result.island, result.selection, result.operator) == ("memory", 7, "mutate")
    (listed,) = store.evaluations(run.id, 0, 10)
    assert {1: listed} == store.evaluations_at(run.id, [1])
    assert (archived.candidate, archived.evaluation) == (listed.candidate, listed.evaluation)
    assert (listed.cost_usd, listed.island, listed.selection) == (0.25, "memory", 7)


def test_listing_goes_on_after_any_sequence(store: Store, run: RunRow) -> None:
    for i in range(7):
        store.add(run.id, new_evaluation(str(i)))
    assert [t.sequence for t in store.evaluations(run.id, 3, 2)] == [4, 5]
    assert [n.sequence for n in store.results(run.id, 5)] == [6, 7]
    assert store.evaluations(run.id, 7, 100) == []


def test_a_request_adds_once(store: Store, run: RunRow) -> None:
    first = store.add(run.id, new_evaluation("a"))
    again = store.add(run.id, new_evaluation("a", median_ns=400.0))
    assert (first, again) == ((again[0], False), (again[0], True))
    with pytest.raises(AlreadyExistsError, match="request a"):
        store.add(run.id, replace(new_evaluation("b"), request_id="a"))
    assert found(store, "first").evaluation_count == 1


def test_another_run_may_use_the_same_request(store: Store, run: RunRow, spec: RunSpec) -> None:
    store.insert_run(replace(spec, name="second"))
    second = found(store, "second")
    assert store.add(run.id, new_evaluation("a"))[0].sequence == 1
    assert store.add(second.id, new_evaluation("a"))[0].sequence == 1


def test_sums_of_a_run_follow_its_evaluations(store: Store, run: RunRow) -> None:
    assert (run.best_speedup, run.cost_usd) == (None, 0.0)
    store.add(run.id, replace(failed("broken"), cost_usd=0.5))
    assert (found(store, "first").evaluation_count, found(store, "first").best_sequence) == (
        1,
        None,
    )
    store.add(run.id, new_evaluation("good", median_ns=500.0))
    store.add(run.id, new_evaluation("better", median_ns=400.0))
    store.add(run.id, replace(new_evaluation("slow", median_ns=900.0), cost_usd=0.25))
    row = found(store, "first")
    assert (row.evaluation_count, row.cost_usd, row.best_sequence, row.best_speedup) == (
        4,
        0.75,
        3,
        2.5,
    )


def test_the_best_follows_what_its_newest_measurement_says(store: Store, run: RunRow) -> None:
    store.add(run.id, new_evaluation("good", median_ns=500.0))
    store.add(run.id, new_evaluation("lucky", median_ns=400.0))
    store.add(run.id, replace(new_evaluation("lucky", median_ns=800.0), request_id="again"))
    assert (found(store, "first").best_sequence, found(store, "first").best_speedup) == (1, 2.0)
    worse = replace(new_evaluation("good", median_ns=625.0), request_id="good again")
    store.add(run.id, worse)
    row = found(store, "first")
    assert (row.best_sequence, row.best_speedup) == (4, 1.6)
    assert worse.evaluation.fitness == row.best_fitness


def test_the_best_that_fails_when_measured_again_is_none_any_more(
    store: Store, run: RunRow
) -> None:
    store.add(run.id, new_evaluation("a"))
    store.add(run.id, replace(failed("a"), request_id="again"))
    assert found(store, "first").best_sequence is None
    assert found(store, "first").best_speedup is None


def test_a_child_is_compared_with_the_newest_verdict_on_its_parent(
    store: Store, run: RunRow
) -> None:
    store.add(run.id, new_evaluation("parent", median_ns=500.0, cell=(0, 1, 0)))
    again = replace(new_evaluation("parent", median_ns=600.0, cell=(1, 1, 0)), request_id="again")
    store.add(run.id, again)
    parent = again.candidate.digest
    child = replace(
        new_evaluation("child", parent=parent, median_ns=400.0, cell=(1, 2, 0)), island="x"
    )
    store.add(run.id, child)
    store.add(run.id, replace(child, request_id="a promotion is no second child"))
    (transition,) = store.transitions(run.id, 0, 10)
    assert (transition.sequence, transition.island, transition.outcome) == (3, "x", "passed")
    assert (parent, child.candidate.digest) == (transition.parent, transition.child)
    assert (transition.parent_cell, transition.child_cell) == ((1, 1, 0), (1, 2, 0))
    gain = child.evaluation.fitness - again.evaluation.fitness
    assert gain == pytest.approx(transition.gain)
    assert store.transitions(run.id, 3, 10) == []


def test_a_failed_candidate_keeps_its_measures(store: Store, run: RunRow) -> None:
    store.add(run.id, failed("broken", (0, 2, 1)))
    unread = failed("unread")
    bare = replace(unread.evaluation, measures=None)
    store.add(run.id, replace(unread, evaluation=bare))
    assert [(n.cell, n.passed) for n in store.results(run.id, 0)] == [
        ((0, 2, 1), False),
        (None, False),
    ]


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        ('TUNE = {"BLOCK": [64, 128]}\n\ndef launch(x):\n    pass\n', True),
        ("def launch(x):\n    pass\n", False),
        ("# TUNE = nothing\n", False),
    ],
)
def test_parameters_are_seen_in_the_plan(
    store: Store, run: RunRow, plan: str, expected: bool
) -> None:
    source = KernelSource(language=Language.SYCL, device_code="", plan=plan)
    candidate = Candidate(source=source)
    evaluation = make_evaluation(candidate, median_ns=500.0)
    new = NewEvaluation(request_id="a", candidate=candidate, evaluation=evaluation)
    assert expected == store.add(run.id, new)[0].has_parameters
    assert expected == store.results(run.id, 0)[0].has_parameters


def test_a_parent_of_another_run_is_refused(store: Store, run: RunRow, spec: RunSpec) -> None:
    store.insert_run(replace(spec, name="second"))
    parent = new_evaluation("parent")
    store.add(found(store, "second").id, parent)
    with pytest.raises(InvalidArgumentError, match="not in this run") as refused:
        store.add(run.id, new_evaluation("child", parent=parent.candidate.digest))
    assert refused.value.metadata["field"] == "candidate.parents"
    assert found(store, "first").evaluation_count == 0
    assert store.results(run.id, 0) == []


def test_each_of_many_parents_is_looked_for(store: Store, run: RunRow) -> None:
    """More than one lookup asks for."""
    parents = [new_evaluation(f"parent {number}") for number in range(9)]
    for parent in parents:
        store.add(run.id, parent)
    child = new_evaluation("child")
    digests = tuple(parent.candidate.digest for parent in parents)
    store.add(run.id, replace(child, candidate=replace(child.candidate, parents=digests)))
    assert found(store, "first").evaluation_count == 10
    other = replace(new_evaluation("other").candidate, parents=(*digests, 64 * "0"))
    with pytest.raises(InvalidArgumentError, match="not in this run"):
        store.add(run.id, replace(child, request_id="other", candidate=other))


def test_another_source_under_a_known_digest_is_refused(
    store: Store, run: RunRow, store_url: str
) -> None:
    store.add(run.id, new_evaluation("a"))
    # Two sources of one SHA-256 do not exist: the stored text stands in for the second.
    engine, _ = open_engine(store_url, SCHEMA)
    with engine.begin() as connection:
        connection.execute(
            sa.text("UPDATE evaluation_texts SET candidate = replace(candidate, '// a', '// z')")
        )
    engine.dispose()
    with pytest.raises(AlreadyExistsError, match="same digest"):
        store.add(run.id, replace(new_evaluation("a"), request_id="again"))
    assert found(store, "first").evaluation_count == 1


@pytest.mark.parametrize("request_id", ["", "x" * 201, "nul\0"])
def test_a_request_id_that_cannot_be_stored_is_refused(
    store: Store, run: RunRow, request_id: str
) -> None:
    with pytest.raises(InvalidArgumentError, match="request_id"):
        store.add(run.id, replace(new_evaluation("a"), request_id=request_id))


def test_adding_to_an_unknown_run_is_refused(store: Store) -> None:
    with pytest.raises(RunNotFoundError):
        store.add(12345, new_evaluation("a"))


def test_writers_at_once_lose_and_repeat_nothing(
    store: Store, store_url: str, run: RunRow, spec: RunSpec
) -> None:
    """Eight writers over two connection pools add to two runs; each request comes twice."""
    store.insert_run(replace(spec, name="second"))
    second = found(store, "second")
    other = Store(store_url)

    def add(i: int) -> int:
        target = (store, other)[i % 2]
        archived = replace(new_evaluation(str(i % 60), median_ns=900.0 - i % 60), cost_usd=0.5)
        return target.add((run.id, second.id)[i % 3 == 0], archived)[0].sequence

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(120)))
    other.close()
    for name, count in (("first", 40), ("second", 20)):
        row = found(store, name)
        numbers = store.results(row.id, 0)
        assert list(range(1, count + 1)) == [n.sequence for n in numbers]
        assert count == len({n.digest for n in numbers})
        assert (count, count * 0.5) == (row.evaluation_count, row.cost_usd)
        assert max(n.fitness for n in numbers) == row.best_fitness


def test_reserved_selections_are_given_once(store: Store, store_url: str, run: RunRow) -> None:
    other = Store(store_url)

    def reserve(i: int) -> range:
        first = (store, other)[i % 2].reserve_selections(run.id, 5)
        return range(first, first + 5)

    with ThreadPoolExecutor(8) as pool:
        numbers = sorted(n for block in pool.map(reserve, range(20)) for n in block)
    other.close()
    assert list(range(100)) == numbers
    assert found(store, "first").selected_count == 100


def test_one_of_several_creators_of_a_run_wins(store: Store, store_url: str, spec: RunSpec) -> None:
    other = Store(store_url)
    with ThreadPoolExecutor(8) as pool:
        created = list(pool.map(lambda i: (store, other)[i % 2].insert_run(spec), range(8)))
    other.close()
    assert sum(created) == 1


def test_stores_opened_at_once_migrate_once(store_url: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        stores = list(pool.map(Store, [store_url] * 4))
    for opened in stores:
        assert opened.list_runs(9) == []
        opened.close()


def test_runs_are_listed_newest_first(store: Store, spec: RunSpec) -> None:
    for name in ("a", "b", "c"):
        store.insert_run(replace(spec, name=name))
    assert [r.spec.name for r in store.list_runs(9)] == ["c", "b", "a"]
    assert [r.spec.name for r in store.list_runs(2)] == ["c", "b"]
    newest = found(store, "")
    assert [r.spec.name for r in store.list_runs(1, before=newest.id)] == ["b"]
    assert (newest.spec.name, newest.state) == ("c", RunState.RUNNING)
    store.set_state(newest.id, RunState.FINISHED)
    assert found(store, "c").state == RunState.FINISHED
    assert store.find_run("d") is None


def test_everything_is_there_after_reopening(store_url: str, spec: RunSpec) -> None:
    opened = Store(store_url)
    opened.insert_run(spec)
    for i in range(5):
        opened.add(1, new_evaluation(str(i), median_ns=900.0 - i))
    before = (opened.list_runs(9), opened.results(1, 0), opened.evaluations(1, 0, 10))
    opened.close()
    again = Store(store_url)
    assert before == (again.list_runs(9), again.results(1, 0), again.evaluations(1, 0, 10))
    again.close()


def test_migrations_make_what_the_schema_says(store_url: str) -> None:
    engine, _ = open_engine(store_url, SCHEMA)
    with engine.connect().execution_options(reader=True) as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []
    engine.dispose()


@pytest.mark.parametrize("has_owners", [False, True])
def test_a_store_of_the_first_schema_is_migrated(store_url: str, has_owners: bool) -> None:
    """Some have owners already. Its runs are nobody's."""
    engine, _ = open_engine(store_url, replace(SCHEMA, head="0001"))
    assert "owner" not in {column["name"] for column in sa.inspect(engine).get_columns("runs")}
    with engine.begin() as connection:
        if has_owners:
            adding = "ALTER TABLE runs ADD COLUMN owner VARCHAR(80) DEFAULT '' NOT NULL"
            connection.execute(sa.text(adding))
        columns = ("name", "spec", "state", "created_unix_s")
        older = sa.table("runs", *map(sa.column, columns))
        row = ("old", to_json(run_spec("old")), "finished", 1.0)
        connection.execute(older.insert(), dict(zip(columns, row, strict=True)))
    engine.dispose()
    store = Store(store_url)
    store.insert_run(run_spec("new"), "ada")
    assert [found(store, name).owner for name in ("old", "new")] == ["", "ada"]
    store.close()


def test_the_features_of_a_launch_are_numbers_of_a_result(store: Store, run: RunRow) -> None:
    """Whatever a client gives; of a verdict without launches they are not known."""
    known = new_evaluation("known")
    given = (
        LaunchFacts(launch_count=2, group_count=3, group_size=256, shared_bytes=49152),
        LaunchFacts(launch_count=-1, group_count=10**300, group_size=2**63 - 1),
        None,
    )
    for number, launches in enumerate(given):
        evaluation = replace(known.evaluation, launches=launches)
        store.add(run.id, replace(known, request_id=str(number), evaluation=evaluation))
    features = [result.features for result in store.results(run.id, 0)]
    assert features == [(256, 3, 49152, 2), (2**53, 2**53, 0, 0), ()]


@pytest.mark.parametrize(("bound", "value"), [("MOST_STEERING", 3), ("LARGEST_STEERING", 120)])
def test_a_run_can_always_be_stopped(
    store: Store, run: RunRow, monkeypatch: pytest.MonkeyPatch, bound: str, value: int
) -> None:
    """Whoever fills a run's steering keeps nobody from the stop."""
    monkeypatch.setattr(f"archive_svc.store.steering.{bound}", value)
    stop = Steering(action=SteeringAction.STOP)
    for text in ("a", "b"):
        store.steer(run.id, Steering(action=SteeringAction.HINT, text=text))
    for more in (SteeringAction.PAUSE, SteeringAction.RESUME):
        with pytest.raises(InvalidArgumentError):
            store.steer(run.id, Steering(action=more))
    stopped = store.steer(run.id, stop)
    assert (stopped.sequence, store.steer(run.id, stop)) == (3, stopped)
    assert store.steering(run.id, 2, 9) == (stopped,)
    assert store.counts(run.id, run.spec.name) == (0, 3)
    assert store.counts(run.id, "other") is None
    with pytest.raises(InvalidArgumentError):
        store.steer(run.id, Steering(action=SteeringAction.RESUME))


def test_a_newer_schema_is_refused(store_url: str) -> None:
    engine, _ = open_engine(store_url, SCHEMA)
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    with pytest.raises(CorruptArchiveError, match="9999"):
        Store(store_url)
