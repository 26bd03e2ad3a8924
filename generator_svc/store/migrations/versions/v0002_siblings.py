"""What each proposal set out to do and how it ended, for later prompts on the same parent."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add to every proposal its candidate, its idea, and what its verdict said."""
    for name, length in (("candidate", 64), ("idea", 400), ("remark", 400)):
        column = sa.Column(name, sa.String(length), nullable=False, server_default="")
        op.add_column("proposals", column)
    op.add_column("proposals", sa.Column("speedup", sa.Float))
