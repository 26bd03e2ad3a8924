"""What can go wrong with a store: each a typed error that says what to do, and nothing lost."""

import resource
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from archive_svc.store.rows import NewEvaluation
from archive_svc.store.schema import SCHEMA
from archive_svc.store.store import Store
from kernel_foundry.domain.archive import RunSpec
from kernel_foundry.errors import (
    CorruptArchiveError,
    InvalidArgumentError,
    PackageMissingError,
    StoreUnavailableError,
)
from kernel_foundry.sql.engine import open_engine
from tests.archive.conftest import make_candidate, make_evaluation
from tests.archive.postgres import PostgresServer, absence


def new_evaluation(label: str) -> NewEvaluation:
    candidate = make_candidate(label)
    evaluation = make_evaluation(candidate, median_ns=500.0)
    return NewEvaluation(request_id=label, candidate=candidate, evaluation=evaluation)


@contextmanager
def opened(url: str) -> Iterator[Store]:
    store = Store(url)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def largest_file(limit_bytes: int) -> Iterator[None]:
    """Let no file of this process grow beyond `limit_bytes`, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def tell_until_refused(store: Store) -> tuple[int, str]:
    """Tell until the store takes no more; return how many it took, and what it says."""
    for i in range(10_000):
        try:
            store.add(1, new_evaluation(str(i)))
        except StoreUnavailableError as error:
            return i, error.message
    raise AssertionError("the store took everything")


def assert_holds(store: Store, count: int) -> None:
    assert [t.candidate for t in store.evaluations(1, 0, count + 1)] == [
        make_candidate(str(i)) for i in range(count)
    ]
    assert store.add(1, new_evaluation(str(count)))[0].sequence == count + 1


def test_a_file_that_cannot_grow_loses_nothing(tmp_path: Path, spec: RunSpec) -> None:
    with opened(f"sqlite:///{tmp_path / 'runs.db'}") as store:
        store.insert_run(spec)
        with largest_file(500_000):
            acknowledged, _ = tell_until_refused(store)
        assert acknowledged > 0
        assert_holds(store, acknowledged)


def test_a_full_database_loses_nothing(tmp_path: Path, spec: RunSpec) -> None:
    """SQLite answers as for a disk without space when a database is at its greatest size."""
    with opened(f"sqlite:///{tmp_path / 'runs.db'}") as store:
        store.insert_run(spec)

        def limit(connection: sqlite3.Connection, _record: object, _proxy: object) -> None:
            connection.execute("PRAGMA max_page_count=100")

        sa.event.listen(store._engine, "checkout", limit)
        acknowledged, message = tell_until_refused(store)
        assert "no space left" in message
        sa.event.remove(store._engine, "checkout", limit)
        with store._engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA max_page_count=1000000")
        assert_holds(store, acknowledged)


_SQLITE_HOLDER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
"""


def test_a_file_locked_by_another_process_is_told_so(tmp_path: Path, spec: RunSpec) -> None:
    path = tmp_path / "runs.db"
    with opened(f"sqlite:///{path}?timeout=0.1") as store:
        store.insert_run(spec)
        store.add(1, new_evaluation("0"))
        with subprocess.Popen(
            [sys.executable, "-c", _SQLITE_HOLDER, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as holder:
            assert holder.stdin is not None
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"locked\n"
            with pytest.raises(StoreUnavailableError, match="another process keeps it locked"):
                store.add(1, new_evaluation("1"))
            assert len(store.results(1, 0)) == 1  # readers do not wait
            holder.stdin.close()
        assert_holds(store, 1)


def test_a_run_locked_by_another_connection_is_told_so(
    postgres_server: PostgresServer, spec: RunSpec
) -> None:
    url = postgres_server.new_store(lock_timeout="100ms")
    with opened(url) as store, opened(url) as other:
        store.insert_run(spec)
        store.insert_run(replace(spec, name="second"))
        store.add(1, new_evaluation("0"))
        with other._engine.begin() as holder:
            holder.execute(sa.text("SELECT * FROM runs WHERE id = 1 FOR UPDATE"))
            with pytest.raises(StoreUnavailableError, match="keeps the run locked"):
                store.add(1, new_evaluation("1"))
            store.add(2, new_evaluation("1"))  # other runs do not wait
        assert_holds(store, 1)


def test_foreign_and_damaged_files_are_refused(tmp_path: Path, spec: RunSpec) -> None:
    (tmp_path / "text.db").write_text("no database at all, but long enough to be looked at" * 40)
    with pytest.raises(CorruptArchiveError, match="move it away"):
        Store(f"sqlite:///{tmp_path / 'text.db'}")
    path = tmp_path / "runs.db"
    with opened(f"sqlite:///{path}") as store:
        store.insert_run(spec)
        for i in range(20):
            store.add(1, new_evaluation(str(i)))
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(CorruptArchiveError), opened(f"sqlite:///{path}") as store:
        store.evaluations(1, 0, 100)


def test_a_folder_that_cannot_be_made_is_a_typed_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    data = tmp_path / "file" / "data"
    monkeypatch.setenv("KERNEL_FOUNDRY_DATA_DIR", str(data))
    with pytest.raises(StoreUnavailableError, match="folder"):
        Store(f"sqlite:///{data / 'runs.db'}")


def test_only_the_data_folder_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistyped store would look like an empty one."""
    monkeypatch.setenv("KERNEL_FOUNDRY_DATA_DIR", str(tmp_path / "data" / "deep"))
    Store(f"sqlite:///{tmp_path / 'data' / 'deep' / 'runs.db'}").close()
    with pytest.raises(InvalidArgumentError, match="there is no folder") as refused:
        Store(f"sqlite:///{tmp_path / 'other' / 'runs.db'}")
    assert refused.value.metadata["field"] == "store"
    assert not (tmp_path / "other").exists()


def test_a_server_that_is_not_there_is_a_typed_error(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailableError, match=r"see that it can be reached") as refused:
        Store(f"postgresql://someone:secret@/runs?host={tmp_path}")
    assert "secret" not in str(refused.value)
    assert "secret" not in refused.value.metadata["url"]


def test_a_missing_driver_is_named_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(PackageMissingError, match=r"install kernel-foundry\[postgres\]"):
        Store("postgresql://someone@/runs")


@pytest.mark.parametrize(
    "url",
    ["runs.db", "mysql://host/runs", "postgres://host/runs", "sqlite://", "sqlite:///:memory:"],
)
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"URL is invalid|expected sqlite:") as refused:
        Store(url)
    assert refused.value.metadata["field"] == "store"


@pytest.mark.slow
def test_a_server_that_crashed_has_everything_acknowledged(spec: RunSpec) -> None:
    reason = absence()
    if reason:
        pytest.skip(reason)
    with PostgresServer(fsync=True) as server, opened(server.new_store()) as store:
        store.insert_run(spec)
        for i in range(10):
            store.add(1, new_evaluation(str(i)))
        server.crash()
        with pytest.raises(StoreUnavailableError):
            store.add(1, new_evaluation("10"))
        server.start()
        assert_holds(store, 10)


def test_readers_never_see_half_an_addition(tmp_path: Path, spec: RunSpec) -> None:
    """A failure between an addition's statements leaves the sums and the rows as they were."""
    with opened(f"sqlite:///{tmp_path / 'runs.db'}") as store:
        store.insert_run(spec)
        store.add(1, new_evaluation("0"))
        engine, _ = open_engine(f"sqlite:///{tmp_path / 'runs.db'}", SCHEMA)
        with engine.begin() as connection:
            connection.execute(
                sa.text(
                    "CREATE TRIGGER fail BEFORE UPDATE ON runs BEGIN "
                    "SELECT RAISE(ABORT, 'the update fails'); END"
                )
            )
        with pytest.raises(CorruptArchiveError):
            store.add(1, new_evaluation("1"))
        with engine.begin() as connection:
            connection.execute(sa.text("DROP TRIGGER fail"))
        engine.dispose()
        assert_holds(store, 1)
