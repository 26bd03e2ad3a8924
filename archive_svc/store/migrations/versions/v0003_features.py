"""What the finer map needs of each evaluation; of those that are there it is not known."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add features to every evaluation."""
    column = sa.Column("features", sa.String(100), nullable=False, server_default="")
    op.add_column("evaluations", column)
