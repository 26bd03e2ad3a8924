"""Proposals say which mechanisms acted in their prompts."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; nothing is known of proposals made before."""
    op.add_column(
        "proposals",
        sa.Column("mechanisms", sa.Text, nullable=False, server_default=sa.text("'[]'")),
    )
