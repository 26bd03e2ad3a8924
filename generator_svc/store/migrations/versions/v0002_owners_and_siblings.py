"""Whose each run is; what each proposal set out to do and how it ended, for later prompts."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add owners, and to every proposal its candidate, its idea, and what its verdict said."""
    if not sa.inspect(op.get_bind()).has_table("owners"):  # some stores of 0001 have it
        op.create_table(
            "owners",
            sa.Column("run", sa.String(200), primary_key=True),
            sa.Column("owner", sa.String(80), nullable=False),
        )
    for name, length in (("candidate", 64), ("idea", 400), ("remark", 400)):
        column = sa.Column(name, sa.String(length), nullable=False, server_default="")
        op.add_column("proposals", column)
    op.add_column("proposals", sa.Column("speedup", sa.Float))
