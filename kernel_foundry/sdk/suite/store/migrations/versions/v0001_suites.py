"""The first schema: suites, and where each of their runs stands."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create both tables."""
    op.create_table(
        "suites",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(80), nullable=False, unique=True),
        sa.Column("plan", sa.Text, nullable=False),
        sa.Column("created_unix_s", sa.Float, nullable=False),
        sa.Column("used_seconds", sa.Float, nullable=False),
        sa.Column("holder", sa.Text, nullable=False),
    )
    op.create_table(
        "entries",
        sa.Column("suite_id", sa.Integer, sa.ForeignKey("suites.id"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("progress", sa.Text, nullable=False),
    )
