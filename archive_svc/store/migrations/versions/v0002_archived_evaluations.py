"""Columns named as the rest of the archive names them."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Rename two columns; both databases know this form."""
    op.execute("ALTER TABLE runs RENAME COLUMN told_count TO evaluation_count")
    op.execute("ALTER TABLE evaluations RENAME COLUMN told_unix_s TO archived_unix_s")
