"""Opens a store: engine, pragmas and schema version.

Raises typed errors for what a user can mend (locked, full, newer, not a database).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.exc import DatabaseError, OperationalError

from archive_svc.store.schema import HEAD
from kernel_foundry.errors import CorruptArchiveError, StoreUnavailableError

BUSY_SECONDS = 30
"""How long a writer waits for another one before the store counts as unavailable."""


def open_engine(url: str) -> sa.Engine:
    """Return an engine on `url` with the schema at `HEAD`.

    Raises:
        StoreUnavailableError: the store cannot be reached, created, locked or written.
        CorruptArchiveError: it is no store of ours, or of a newer version.
    """
    parsed = sa.make_url(url)
    is_sqlite = parsed.get_backend_name() == "sqlite"
    if is_sqlite and parsed.database:
        try:
            Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreUnavailableError(
                f"cannot create the folder of the store {parsed.database}: {error}", url=url
            ) from error
    engine = sa.create_engine(parsed, connect_args={"timeout": BUSY_SECONDS} if is_sqlite else {})
    if is_sqlite:
        sa.event.listen(engine, "connect", _set_pragmas)
        sa.event.listen(engine, "begin", _begin_immediate)
    with store_errors(url):
        _migrate(engine, url)
    return engine


@contextmanager
def store_errors(url: str) -> Iterator[None]:
    """Turn the database's errors into ours.

    Raises:
        StoreUnavailableError: an operational error: locked, full, unreachable, read-only.
        CorruptArchiveError: any other: not a database, malformed, schema differs.
    """
    try:
        yield
    except OperationalError as error:
        raise StoreUnavailableError(
            f"the store {url} cannot be used now: {error.orig}; free disk space, stop other "
            "writers or choose another store with --store",
            url=url,
        ) from error
    except DatabaseError as error:
        raise CorruptArchiveError(
            f"the store {url} cannot be read: {error.orig}; move the file away to start anew",
            url=url,
        ) from error


def _set_pragmas(connection: object, _record: object) -> None:
    """WAL for readers beside a writer; FULL so that a told evaluation survives a power cut."""
    # The driver's own transaction handling would begin too late for BEGIN IMMEDIATE.
    connection.isolation_level = None  # type: ignore[attr-defined]
    cursor = connection.cursor()  # type: ignore[attr-defined]
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _begin_immediate(connection: sa.Connection) -> None:
    """Writers take the lock at the start, so that none fails half-way; readers do not."""
    is_reader = connection.get_execution_options().get("reader", False)
    connection.exec_driver_sql("BEGIN" if is_reader else "BEGIN IMMEDIATE")


def _migrate(engine: sa.Engine, url: str) -> None:
    with engine.connect().execution_options(reader=True) as connection:
        found = _version(connection)
    if found == HEAD:
        return
    if found is not None and found > HEAD:
        raise CorruptArchiveError(
            f"the store {url} has schema {found}, this version knows {HEAD}: update "
            "kernel-foundry or choose another store with --store",
            url=url,
            found=found,
        )
    # Alembic costs a fifth of a second to import and is needed once in a store's life.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "archive_svc.store:migrations")
    with engine.begin() as connection:
        if _version(connection) == HEAD:  # another process was faster
            return
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _version(connection: sa.Connection) -> str | None:
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    version = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()
    return str(version) if version is not None else None
