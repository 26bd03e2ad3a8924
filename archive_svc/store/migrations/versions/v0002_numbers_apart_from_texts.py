"""Told numbers apart from their texts, with island and gain; sums of a run beside the run."""

import json
import re
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_TEXT_COLUMNS = ("run_id", "sequence", "candidate", "evaluation")

_BATCH = 200
"""Rows copied at a time: their texts are several kilobytes each."""

_HAS_TUNE = re.compile(r"^TUNE\s*[:=]", re.MULTILINE)


def upgrade() -> None:
    """Make the new tables and fill them with what the old ones say."""
    for column in (
        sa.Column("told_count", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("selected_count", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("cost_usd", sa.Float, nullable=False, server_default=sa.text("0")),
        sa.Column("best_sequence", sa.Integer),
        sa.Column("best_fitness", sa.Float),
        sa.Column("best_speedup", sa.Float),
    ):
        op.add_column("runs", column)
    op.rename_table("told", "told_0001")
    told, texts = _create_told(), _create_texts()
    op.create_index("ix_told_digest", "told", ["run_id", "digest", "sequence"])
    connection = op.get_bind()
    runs = connection.execute(sa.text("SELECT id FROM runs")).scalars().all()
    for run_id in runs:
        _move_run(connection, run_id, told, texts)
    op.drop_table("told_0001")
    if connection.dialect.name == "sqlite":
        _describe_indexes(connection)


def _create_told() -> sa.Table:
    return op.create_table(
        "told",
        sa.Column("run_id", sa.Integer, sa.ForeignKey("runs.id"), nullable=False),
        sa.Column("sequence", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("request_id", sa.String(200), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("operator", sa.String(20), nullable=False),
        sa.Column("parent", sa.String(64), nullable=False),
        sa.Column("parent_sequence", sa.Integer),
        sa.Column("gain", sa.Float),
        sa.Column("outcome", sa.String(30), nullable=False),
        sa.Column("fitness", sa.Float, nullable=False),
        sa.Column("optimistic", sa.Float, nullable=False),
        sa.Column("memory", sa.Integer),
        sa.Column("algorithm", sa.Integer),
        sa.Column("synchronization", sa.Integer),
        sa.Column("speedup", sa.Float),
        sa.Column("has_parameters", sa.Boolean, nullable=False),
        sa.Column("island", sa.String(40), nullable=False),
        sa.Column("selection", sa.Integer),
        sa.Column("cost_usd", sa.Float, nullable=False),
        sa.Column("told_unix_s", sa.Float, nullable=False),
        # Named: PostgreSQL keeps the old table's names for the old table.
        sa.PrimaryKeyConstraint("run_id", "sequence", name="pk_told"),
        sa.UniqueConstraint("run_id", "request_id", name="uq_told_request_id"),
        sqlite_with_rowid=False,
    )


def _create_texts() -> sa.Table:
    return op.create_table(
        "told_texts",
        sa.Column("run_id", sa.Integer, nullable=False),
        sa.Column("sequence", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("candidate", sa.Text, nullable=False),
        sa.Column("evaluation", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "sequence"),
        sa.ForeignKeyConstraint(["run_id", "sequence"], ["told.run_id", "told.sequence"]),
    )


def _describe_indexes(connection: sa.Connection) -> None:
    """Tell SQLite's planner how large a run may grow.

    It takes a run for ten rows otherwise, and reads the whole of it to find a digest.
    Source: sqlite.org/fileformat2.html#stat1tab, "rows, and rows for each value of the key".
    """
    connection.exec_driver_sql("ANALYZE sqlite_schema")  # makes the table
    connection.exec_driver_sql("DELETE FROM sqlite_stat1")
    connection.exec_driver_sql(
        "INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('told', 'told', '100000 10000 1'), "
        "('told', 'ix_told_digest', '100000 10000 1 1')"
    )


def _move_run(connection: sa.Connection, run_id: int, told: sa.Table, texts: sa.Table) -> None:
    """Move a run's rows and add up what its own row now holds."""
    newest: dict[str, dict[str, Any]] = {}
    cost_usd, count = 0.0, 0
    for batch in _batches(connection, run_id):
        numbers = [_numbers(row, newest) for row in batch]
        connection.execute(told.insert(), numbers)
        connection.execute(
            texts.insert(),
            [{name: row[name] for name in _TEXT_COLUMNS} for row in batch],
        )
        cost_usd += sum(n["cost_usd"] for n in numbers)
        count = numbers[-1]["sequence"]
    passed = [n for n in newest.values() if n["outcome"] == "passed"]
    best = max(passed, key=lambda n: (n["fitness"], -n["sequence"]), default=None)
    connection.execute(
        sa.text(
            "UPDATE runs SET told_count = :count, selected_count = :count, cost_usd = :cost_usd, "
            "best_sequence = :sequence, best_fitness = :fitness, best_speedup = :speedup "
            "WHERE id = :run_id"
        ),
        {
            "run_id": run_id,
            "count": count,
            "cost_usd": cost_usd,
            "sequence": best["sequence"] if best else None,
            "fitness": best["fitness"] if best else None,
            "speedup": best["speedup"] if best else None,
        },
    )


def _batches(connection: sa.Connection, run_id: int) -> Iterator[list[dict[str, Any]]]:
    query = sa.text(
        "SELECT * FROM told_0001 WHERE run_id = :run_id AND sequence > :after "
        f"ORDER BY sequence LIMIT {_BATCH}"
    )
    after = 0
    while rows := connection.execute(query, {"run_id": run_id, "after": after}).mappings().all():
        yield [dict(row) for row in rows]
        after = rows[-1]["sequence"]


def _numbers(row: dict[str, Any], newest: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the new row of numbers; `newest` is each digest's newest one so far."""
    parent = newest.get(row["parent"]) if row["digest"] not in newest else None
    # 0001 left the measures of failed candidates to the text alone.
    measures = json.loads(row["evaluation"])["measures"] or {}
    numbers = {
        **{k: v for k, v in row.items() if k not in ("candidate", "evaluation")},
        "memory": measures.get("memory"),
        "algorithm": measures.get("algorithm"),
        "synchronization": measures.get("synchronization"),
        "parent_sequence": parent["sequence"] if parent else None,
        "gain": row["fitness"] - parent["fitness"] if parent else None,
        "has_parameters": bool(_HAS_TUNE.search(json.loads(row["candidate"])["source"]["plan"])),
        "island": "",
        "selection": None,
    }
    newest[row["digest"]] = numbers
    return numbers
