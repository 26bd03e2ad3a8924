"""Opens a store by its URL: a SQLite file, or a database of a PostgreSQL server.

Both are set up so that what was committed survives a power cut and no writer waits for ever.
"""

import sqlite3
import time
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from kernel_foundry.errors import (
    InvalidArgumentError,
    KernelFoundryError,
    PackageMissingError,
    StoreUnavailableError,
)
from kernel_foundry.paths import data_dir
from kernel_foundry.sql.failures import store_errors
from kernel_foundry.sql.migrate import SchemaLocation, migrate
from kernel_foundry.sql.prepared import PreparedStatement

BUSY_SECONDS: Final = 10
"""How long a writer waits for another one before the store counts as unavailable; well below the
30 s that clients wait, so that they learn why."""

_CONNECT_SECONDS: Final = 10
"""How long a PostgreSQL server may take to answer."""

_BEGIN: Final = PreparedStatement(sa.text("BEGIN"))
_BEGIN_IMMEDIATE: Final = PreparedStatement(sa.text("BEGIN IMMEDIATE"))


def open_engine(url: str, schema: SchemaLocation) -> tuple[sa.Engine, str]:
    """Return an engine on `url` with `schema` at its head, and the URL without its password.

    Raises:
        InvalidArgumentError: the URL is none, of a database that we do not support, or of a file
            in a folder that there is not; the data folder is made.
        StoreUnavailableError: the store cannot be reached, created, locked or written.
        PackageMissingError: PostgreSQL's driver is not installed.
        CorruptArchiveError: it is no store of ours, or of a newer version.
    """
    parsed = _parse(url)
    shown = parsed.render_as_string(hide_password=True)
    if parsed.get_backend_name() == "sqlite":
        engine = _sqlite(parsed, shown)
    else:
        engine = _postgresql(parsed, shown)
    try:
        with store_errors(shown):
            migrate(engine, shown, schema)
    except KernelFoundryError:
        engine.dispose()
        raise
    return engine, shown


def _parse(url: str) -> sa.URL:
    try:
        parsed = sa.make_url(url)
        backend = parsed.get_backend_name()
    except sa.exc.ArgumentError as error:
        raise InvalidArgumentError(f"the store's URL is invalid: {error}", field="store") from error
    if backend not in ("sqlite", "postgresql"):
        raise InvalidArgumentError(
            f"a store cannot be on {backend}: expected sqlite:////path/to/runs.db or "
            "postgresql://user@host/database",
            field="store",
        )
    if backend == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise InvalidArgumentError(
            f"the store {url} would be lost with its process: expected sqlite:////path/to/runs.db",
            field="store",
        )
    return parsed


def _sqlite(url: sa.URL, shown: str) -> sa.Engine:
    assert url.database is not None  # `_parse` refuses what has no file
    folder = Path(url.database).parent
    try:
        if folder == data_dir():
            folder.mkdir(parents=True, exist_ok=True)
        is_there = folder.is_dir()
    except OSError as error:
        raise StoreUnavailableError(
            f"cannot create the folder of the store {url.database}: {error}", url=shown
        ) from error
    if not is_there:
        # Made in silence, a mistyped one would look like a store that is empty.
        raise InvalidArgumentError(
            f"there is no folder {folder} for the store {url.database}: make it", field="store"
        )
    arguments = {} if "timeout" in url.query else {"timeout": BUSY_SECONDS}
    engine = sa.create_engine(url, connect_args=arguments)
    sa.event.listen(engine, "connect", _set_pragmas)
    sa.event.listen(engine, "begin", _begin_immediate)
    return engine


def _postgresql(url: sa.URL, shown: str) -> sa.Engine:
    arguments: dict[str, Any] = {}
    if "connect_timeout" not in url.query:
        arguments["connect_timeout"] = _CONNECT_SECONDS
    if "options" not in url.query:
        # A server may be set to answer before it has written; the archive promises more.
        arguments["options"] = f"-c lock_timeout={BUSY_SECONDS}s -c synchronous_commit=on"
    try:
        return sa.create_engine(
            url.set(drivername="postgresql+psycopg"),
            connect_args=arguments,
            isolation_level="READ COMMITTED",
            pool_pre_ping=True,  # a server that was restarted costs no call
        )
    except ImportError as error:
        raise PackageMissingError(
            f"the store {shown} needs PostgreSQL's driver: install kernel-foundry[postgres] "
            f"({error})",
            package="psycopg",
        ) from error


def _set_pragmas(connection: Any, _record: object) -> None:
    """WAL for readers beside a writer; FULL so that an archived evaluation survives a power cut."""
    # The driver's own transaction handling would begin too late for BEGIN IMMEDIATE.
    connection.isolation_level = None
    cursor = connection.cursor()
    _use_wal(cursor)
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _use_wal(cursor: sqlite3.Cursor) -> None:
    """Switch to WAL; SQLite does not wait for others itself when several do so at once."""
    (busy_ms,) = cursor.execute("PRAGMA busy_timeout").fetchone()
    deadline_s = time.monotonic() + busy_ms / 1000
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not is_busy or time.monotonic() > deadline_s:
                raise
            time.sleep(0.005)
        else:
            return


def _begin_immediate(connection: sa.Connection) -> None:
    """Writers take the lock at the start, so that none fails half-way; readers do not."""
    is_reader = connection.get_execution_options().get("reader", False)
    (_BEGIN if is_reader else _BEGIN_IMMEDIATE).run(connection, {})
