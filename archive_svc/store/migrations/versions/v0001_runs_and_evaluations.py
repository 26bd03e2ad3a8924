"""The first schema: runs, their evaluations, and what people asked of them."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create all tables."""
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(200), nullable=False, unique=True),
        sa.Column("spec", sa.Text, nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("created_unix_s", sa.Float, nullable=False),
        sa.Column("evaluation_count", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("selected_count", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("cost_usd", sa.Float, nullable=False, server_default=sa.text("0")),
        sa.Column("best_sequence", sa.Integer),
        sa.Column("best_fitness", sa.Float),
        sa.Column("best_speedup", sa.Float),
        sa.Column("holder", sa.Text, nullable=False, server_default=sa.text("''")),
        sa.Column("held_until_unix_s", sa.Float, nullable=False, server_default=sa.text("0")),
        sa.Column("budget", sa.Text, nullable=False, server_default=sa.text("''")),
        sa.Column("steering_count", sa.Integer, nullable=False, server_default=sa.text("0")),
    )
    op.create_table(
        "evaluations",
        sa.Column("run_id", sa.Integer, sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("sequence", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("request_id", sa.String(200), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("operator", sa.String(20), nullable=False),
        sa.Column("parent", sa.String(64), nullable=False),
        sa.Column("parent_sequence", sa.Integer),
        sa.Column("gain", sa.Float),
        sa.Column("outcome", sa.String(30), nullable=False),
        sa.Column("fitness", sa.Float, nullable=False),
        sa.Column("memory", sa.Integer),
        sa.Column("algorithm", sa.Integer),
        sa.Column("synchronization", sa.Integer),
        sa.Column("speedup", sa.Float),
        sa.Column("has_parameters", sa.Boolean, nullable=False),
        sa.Column("island", sa.String(40), nullable=False),
        sa.Column("selection", sa.Integer),
        sa.Column("cost_usd", sa.Float, nullable=False),
        sa.Column("archived_unix_s", sa.Float, nullable=False),
        sa.Column("journal", sa.String(65536), nullable=False),
        sa.UniqueConstraint("run_id", "request_id", name="uq_evaluations_request_id"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_evaluations_digest", "evaluations", ["run_id", "digest", "sequence"])
    op.create_table(
        "evaluation_texts",
        sa.Column("run_id", sa.Integer, primary_key=True),
        sa.Column("sequence", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("candidate", sa.Text, nullable=False),
        sa.Column("evaluation", sa.Text, nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id", "sequence"], ["evaluations.run_id", "evaluations.sequence"]
        ),
    )
    op.create_table(
        "steering",
        sa.Column("run_id", sa.Integer, sa.ForeignKey("runs.id"), primary_key=True),
        sa.Column("sequence", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("steered_unix_s", sa.Float, nullable=False),
        sa.Column("evaluation_count", sa.Integer, nullable=False),
        sa.Column("steering", sa.Text, nullable=False),
    )
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        _describe_indexes(connection)


def _describe_indexes(connection: sa.Connection) -> None:
    """Say to SQLite's planner how large a run may grow.

    It takes a run for ten rows otherwise, and reads the whole of it to find a digest.
    Source: sqlite.org/fileformat2.html#stat1tab, "rows, and rows for each value of the key".
    """
    connection.exec_driver_sql("ANALYZE sqlite_schema")  # makes the table
    connection.exec_driver_sql("DELETE FROM sqlite_stat1")
    connection.exec_driver_sql(
        "INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES "
        "('evaluations', 'evaluations', '100000 10000 1'), "
        "('evaluations', 'ix_evaluations_digest', '100000 10000 1 1')"
    )
