"""Whose each run is; those that are there are nobody's."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add an owner to every run."""
    columns = sa.inspect(op.get_bind()).get_columns("runs")
    if all(column["name"] != "owner" for column in columns):  # some stores of 0001 have it
        op.add_column("runs", sa.Column("owner", sa.String(80), nullable=False, server_default=""))
