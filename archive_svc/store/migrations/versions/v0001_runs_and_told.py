"""The first schema: runs and their told evaluations."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create both tables."""
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(200), nullable=False, unique=True),
        sa.Column("spec", sa.Text, nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("created_unix_s", sa.Float, nullable=False),
    )
    op.create_table(
        "told",
        sa.Column("run_id", sa.Integer, sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("sequence", sa.Integer, primary_key=True),
        sa.Column("request_id", sa.String(200), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("operator", sa.String(20), nullable=False),
        sa.Column("parent", sa.String(64), nullable=False),
        sa.Column("outcome", sa.String(30), nullable=False),
        sa.Column("fitness", sa.Float, nullable=False),
        sa.Column("optimistic", sa.Float, nullable=False),
        sa.Column("memory", sa.Integer),
        sa.Column("algorithm", sa.Integer),
        sa.Column("synchronization", sa.Integer),
        sa.Column("speedup", sa.Float),
        sa.Column("cost_usd", sa.Float, nullable=False),
        sa.Column("told_unix_s", sa.Float, nullable=False),
        sa.Column("candidate", sa.Text, nullable=False),
        sa.Column("evaluation", sa.Text, nullable=False),
        sa.UniqueConstraint("run_id", "request_id", name="uq_told_request"),
    )
