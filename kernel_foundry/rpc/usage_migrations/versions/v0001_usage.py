"""The first schema: what each user has used."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "quota_usage",
        sa.Column("user", sa.String(80), primary_key=True),
        sa.Column("evaluations", sa.Integer, nullable=False),
        sa.Column("usd", sa.Float, nullable=False),
    )
