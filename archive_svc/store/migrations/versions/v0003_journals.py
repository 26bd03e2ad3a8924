"""Journals: what was selected and dropped before each tell."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; of what was told before, nothing is known."""
    op.add_column(
        "told", sa.Column("journal", sa.String(65536), nullable=False, server_default=sa.text("''"))
    )
