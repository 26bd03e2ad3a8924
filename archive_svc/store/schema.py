"""Tables of the store. Numbers that queries need are columns; the rest is JSON text.

Changes need a new file in `migrations/versions` and its id in `HEAD`.
"""

import sqlalchemy as sa

HEAD = "0001"
"""Schema version this code reads and writes."""

METADATA = sa.MetaData()

RUNS = sa.Table(
    "runs",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(200), nullable=False, unique=True),
    sa.Column("spec", sa.Text, nullable=False),
    sa.Column("state", sa.String(20), nullable=False),
    sa.Column("created_unix_s", sa.Float, nullable=False),
)

TOLD = sa.Table(
    "told",
    METADATA,
    sa.Column("run_id", sa.Integer, sa.ForeignKey("runs.id"), primary_key=True),
    sa.Column("sequence", sa.Integer, primary_key=True),
    sa.Column("request_id", sa.String(200), nullable=False),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("operator", sa.String(20), nullable=False),
    sa.Column("parent", sa.String(64), nullable=False),
    sa.Column("outcome", sa.String(30), nullable=False),
    sa.Column("fitness", sa.Float, nullable=False),
    sa.Column("optimistic", sa.Float, nullable=False),
    sa.Column("memory", sa.Integer),
    sa.Column("algorithm", sa.Integer),
    sa.Column("synchronization", sa.Integer),
    sa.Column("speedup", sa.Float),
    sa.Column("cost_usd", sa.Float, nullable=False),
    sa.Column("told_unix_s", sa.Float, nullable=False),
    sa.Column("candidate", sa.Text, nullable=False),
    sa.Column("evaluation", sa.Text, nullable=False),
    sa.UniqueConstraint("run_id", "request_id", name="uq_told_request"),
)
