"""Brings a store's schema to its head, or refuses one that is newer."""

from dataclasses import dataclass

import sqlalchemy as sa

from kernel_foundry.errors import CorruptArchiveError

_ADVISORY_LOCK = 0x6B66_6472
"""Any number, the same for all of us: of two processes on a new store one migrates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaLocation:
    """A schema and its migrations."""

    head: str
    """Version that the code reads and writes."""
    migrations: str
    """Alembic's location of the migrations, as `package:folder`."""
    version_table: str = "alembic_version"
    """Where a store's version stands; two schemas in one database need two."""


def migrate(engine: sa.Engine, shown_url: str, schema: SchemaLocation) -> None:
    """Upgrade the schema in one transaction, unless it is at its head already.

    Raises:
        CorruptArchiveError: a newer version wrote the store.
    """
    with engine.connect().execution_options(reader=True) as connection:
        found = _version(connection, schema)
    if found == schema.head:
        return
    if found is not None and found > schema.head:
        raise CorruptArchiveError(
            f"the store {shown_url} has schema {found}, this version knows {schema.head}: update "
            "kernel-foundry or choose another store",
            url=shown_url,
            found=found,
        )
    # Alembic costs a fifth of a second to import and is needed once in a store's life.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", schema.migrations)
    with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_ADVISORY_LOCK)))
        if _version(connection, schema) == schema.head:  # another process was faster
            return
        config.attributes["connection"] = connection
        command.upgrade(config, schema.head)
    engine.dispose()  # SQLite reads its planner's statistics when a connection is made


def _version(connection: sa.Connection, schema: SchemaLocation) -> str | None:
    if not sa.inspect(connection).has_table(schema.version_table):
        return None
    table = sa.table(schema.version_table, sa.column("version_num"))
    version = connection.execute(sa.select(table.c.version_num)).scalar()
    return str(version) if version is not None else None
