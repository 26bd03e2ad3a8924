"""What people ask of runs."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table of steering events and the count beside each run."""
    op.create_table(
        "steering",
        sa.Column("run_id", sa.Integer, sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("sequence", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("steered_unix_s", sa.Float, nullable=False),
        sa.Column("evaluation_count", sa.Integer, nullable=False),
        sa.Column("steering", sa.Text, nullable=False),
    )
    op.add_column(
        "runs",
        sa.Column("steering_count", sa.Integer, nullable=False, server_default=sa.text("0")),
    )
