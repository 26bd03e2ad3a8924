"""Leases: which loop works on a run, and what it may use."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; no loop of an older version goes on, whatever its run's state says."""
    for name in ("holder", "budget"):
        op.add_column(
            "runs", sa.Column(name, sa.Text, nullable=False, server_default=sa.text("''"))
        )
    op.add_column(
        "runs",
        sa.Column("held_until_unix_s", sa.Float, nullable=False, server_default=sa.text("0")),
    )
    op.execute("UPDATE runs SET state = 'interrupted' WHERE state = 'running'")
