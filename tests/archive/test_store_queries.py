"""What an addition and a long run ask of the store: by whole keys, and each text once."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import sqlalchemy as sa

from archive_svc.archive import LocalArchive
from archive_svc.store.rows import EvaluationRow, NewEvaluation, numbers_of
from archive_svc.store.store import Store
from archive_svc.store.whole_run import RunHead, WholeRuns
from kernel_foundry.domain.archive import RunSpec, RunState
from tests.archive.conftest import make_candidate, make_evaluation


def new_evaluation(label: str, *, parent: str = "", median_ns: float = 500.0) -> NewEvaluation:
    candidate = make_candidate(label, parent=parent)
    evaluation = make_evaluation(candidate, median_ns=median_ns)
    return NewEvaluation(request_id=label, candidate=candidate, evaluation=evaluation)


def traced(store: Store) -> list[str]:
    """Return a list that SQLite appends every statement to, with its values."""
    statements: list[str] = []

    def trace(connection: sqlite3.Connection, *_: object) -> None:
        connection.set_trace_callback(statements.append)

    sa.event.listen(store._engine, "checkout", trace)
    return statements


def test_sqlite_finds_what_an_addition_needs_by_its_whole_key(
    tmp_path: Path, spec: RunSpec
) -> None:
    """Neither a request, nor a digest, nor the newest best is looked for in all of a run."""
    with closing(Store(f"sqlite:///{tmp_path / 'runs.db'}")) as store:
        store.insert_run(spec)
        parent = new_evaluation("parent")
        store.add(1, parent)
        statements = traced(store)
        store.add(1, new_evaluation("child", parent=parent.candidate.digest, median_ns=400.0))
        worse = replace(
            new_evaluation("child", median_ns=900.0), request_id="the best is worse now"
        )
        for _ in range(2):
            store.add(1, worse)
        queries = [text for text in statements if text.startswith("SELECT")]
        with store._engine.connect() as connection:
            plans = [
                row.detail
                for text in queries
                for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}")
            ]
    assert any("digest=?" in plan for plan in plans)
    assert any("request_id=?" in plan for plan in plans)
    whole = [plan for plan in plans if plan.startswith("SCAN") or plan.endswith("(run_id=?)")]
    # Only a best that is worth less than it was has all others looked through, once.
    assert len(whole) == 1, whole


async def test_a_verdict_on_a_selection_costs_one_transaction(
    tmp_path: Path, spec: RunSpec
) -> None:
    """That the run still has its name is seen by the statement that locks it."""
    archive = LocalArchive(f"sqlite:///{tmp_path / 'runs.db'}")
    await archive.create_run(spec)
    parent = make_candidate("parent")
    child = make_candidate("child", parent=parent.digest)
    verdicts = [make_evaluation(candidate, median_ns=500.0) for candidate in (parent, child)]
    await archive.add(spec.name, parent, verdicts[0], request_id="1")
    selection = await archive.select(spec.name)
    statements = traced(archive._store)
    await archive.add(spec.name, child, verdicts[1], request_id="2", selection=selection.sequence)
    verbs = [text.split(maxsplit=1)[0] for text in statements]
    assert verbs == ["BEGIN", "SELECT", "SELECT", "INSERT", "INSERT", "UPDATE", "COMMIT"]
    statements.clear()
    await archive.select(spec.name)
    assert [text.split(maxsplit=1)[0] for text in statements] == ["SELECT"]
    await archive.close()


def test_equal_strings_of_a_long_run_are_one(tmp_path: Path, spec: RunSpec) -> None:
    """Of 100,000 digests and outcomes no copy is kept."""
    count = 2_000
    url = f"sqlite:///{tmp_path / 'runs.db'}"

    def rows() -> Iterator[EvaluationRow]:
        numbers = numbers_of(new_evaluation("x"))
        for i in range(count):
            own = {**numbers, "request_id": str(i), "digest": f"{i:064}", "parent": f"{i // 2:064}"}
            yield EvaluationRow(numbers=own, candidate="{}", evaluation="{}")

    head = RunHead(
        spec=spec,
        state=RunState.RUNNING,
        created_unix_s=1.0,
        evaluation_count=count,
        selected_count=0,
    )
    with closing(WholeRuns(url)) as runs:
        assert runs.insert(head, rows())
    with closing(Store(url)) as store:
        archived = store.results(1, 0)
    assert [n.sequence for n in archived] == list(range(1, count + 1))
    # A child's parent is the digest that its parent was added with.
    assert archived[9].parent is archived[4].digest
    assert len({id(n.outcome) for n in archived}) == 1
