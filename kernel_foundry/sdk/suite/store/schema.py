"""Tables of the suites' store. What no query asks for is JSON text.

Changes need a new file in `migrations/versions` and its id in `HEAD`.
"""

from typing import Final

import sqlalchemy as sa

from kernel_foundry.sql.migrate import SchemaLocation

HEAD: Final = "0001"
"""Schema version this code reads and writes."""

SCHEMA: Final = SchemaLocation(head=HEAD, migrations="kernel_foundry.sdk.suite.store:migrations")

METADATA = sa.MetaData()

SUITES = sa.Table(
    "suites",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(80), nullable=False, unique=True),
    sa.Column("plan", sa.Text, nullable=False),  # with its tasks, as JSON
    sa.Column("created_unix_s", sa.Float, nullable=False),
    sa.Column("used_seconds", sa.Float, nullable=False),
    # The process that works on it, as JSON; "": none does.
    sa.Column("holder", sa.Text, nullable=False),
)

ENTRIES = sa.Table(
    "entries",
    METADATA,
    sa.Column("suite_id", sa.Integer, sa.ForeignKey("suites.id"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("state", sa.String(20), nullable=False),
    sa.Column("progress", sa.Text, nullable=False),  # `entry.RunProgress` as JSON
)
"""A row for each run that was begun or settled; the others are waiting."""
