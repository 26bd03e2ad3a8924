"""Brings a store's schema to `HEAD`, or refuses one that is newer."""

import sqlalchemy as sa

from archive_svc.store.schema import HEAD
from kernel_foundry.errors import CorruptArchiveError

_ADVISORY_LOCK = 0x6B66_6472
"""Any number, the same for all of us: of two processes on a new store one migrates."""


def migrate(engine: sa.Engine, shown_url: str) -> None:
    """Upgrade the schema in one transaction, unless it is at `HEAD` already.

    Raises:
        CorruptArchiveError: a newer version wrote the store.
    """
    with engine.connect().execution_options(reader=True) as connection:
        found = _version(connection)
    if found == HEAD:
        return
    if found is not None and found > HEAD:
        raise CorruptArchiveError(
            f"the store {shown_url} has schema {found}, this version knows {HEAD}: update "
            "kernel-foundry or choose another store with --store",
            url=shown_url,
            found=found,
        )
    # Alembic costs a fifth of a second to import and is needed once in a store's life.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "archive_svc.store:migrations")
    with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_ADVISORY_LOCK)))
        if _version(connection) == HEAD:  # another process was faster
            return
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
    engine.dispose()  # SQLite reads what its planner is told when a connection is made


def _version(connection: sa.Connection) -> str | None:
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    version = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()
    return str(version) if version is not None else None
