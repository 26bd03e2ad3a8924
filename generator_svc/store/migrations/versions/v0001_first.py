"""The first schema: a run's exchanges, spending and proposals, and what is learnt from them."""

import uuid

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create every table."""
    op.create_table(
        "exchanges",
        sa.Column("run", sa.String(200), primary_key=True),
        sa.Column("sequence", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("name", sa.String(120), nullable=False),
    )
    op.create_table(
        "spend",
        sa.Column("run", sa.String(200), primary_key=True),
        sa.Column("model", sa.String(200), primary_key=True),
        sa.Column("requests", sa.Integer, nullable=False),
        sa.Column("retries", sa.Integer, nullable=False),
        sa.Column("prompt_tokens", sa.BigInteger, nullable=False),
        sa.Column("completion_tokens", sa.BigInteger, nullable=False),
        sa.Column("usd", sa.Float, nullable=False),
    )
    op.create_table(
        "proposals",
        sa.Column("run", sa.String(200), primary_key=True),
        sa.Column("selection", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("language", sa.String(10), nullable=False),
        sa.Column("operator", sa.String(20), nullable=False),
        sa.Column("expert", sa.String(40), nullable=False),
        sa.Column("model", sa.String(200), nullable=False),
        sa.Column("usd", sa.Float, nullable=False),
        sa.Column("lessons", sa.Text, nullable=False),
        sa.Column("mechanisms", sa.Text, nullable=False),
        sa.Column("sections", sa.Integer),
        sa.Column("parent", sa.String(64), nullable=False),
        sa.Column("parent_fitness", sa.Float),
        sa.Column("parent_speedup", sa.Float),
        sa.Column("parent_findings", sa.Text, nullable=False),
        sa.Column("outcome", sa.String(30)),
        sa.Column("gain", sa.Float),
        sa.Column("judged_unix_s", sa.Float),
        sa.Column("learnt", sa.Boolean, nullable=False, server_default=sa.false()),
    )
    op.create_index("ix_proposals_judged", "proposals", ["judged_unix_s"])
    op.create_table(
        "sections",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("language", sa.String(10), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("parent", sa.Integer, sa.ForeignKey("sections.id")),
        sa.Column("philosophy", sa.Text, nullable=False),
        sa.Column("strategies", sa.Text, nullable=False),
        sa.Column("pitfalls", sa.Text, nullable=False),
        sa.Column("analysis", sa.Text, nullable=False),
        sa.Column("uses", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("gain_sum", sa.Float, nullable=False, server_default=sa.text("0")),
        sa.Column("outcomes", sa.Text, nullable=False, server_default=sa.text("'{}'")),
        sa.Column("created_unix_s", sa.Float, nullable=False),
        sa.UniqueConstraint("language", "digest", name="uq_sections_digest"),
    )
    op.create_table(
        "section_credits",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("request_id", sa.String(240), nullable=False, unique=True),
        sa.Column("section", sa.Integer, sa.ForeignKey("sections.id"), nullable=False),
        sa.Column("language", sa.String(10), nullable=False),
        sa.Column("run", sa.String(200), nullable=False),
        sa.Column("gain", sa.Float, nullable=False),
    )
    op.create_index("ix_section_credits_language", "section_credits", ["language", "id"])
    op.create_table(
        "section_edits",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("run", sa.String(200), nullable=False),
        sa.Column("language", sa.String(10), nullable=False),
        sa.Column("parent", sa.Integer, sa.ForeignKey("sections.id"), nullable=False),
        sa.Column("child", sa.Integer, sa.ForeignKey("sections.id")),
        sa.Column("result", sa.String(20), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("last_credit", sa.Integer, nullable=False),
        sa.Column("created_unix_s", sa.Float, nullable=False),
    )
    op.create_index("ix_section_edits_language", "section_edits", ["language", "id"])
    op.create_table(
        "lessons",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("key", sa.String(80), unique=True),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("language", sa.String(10)),
        sa.Column("origin", sa.String(10), nullable=False),
        sa.Column("findings", sa.Text, nullable=False),
        sa.Column("experts", sa.Text, nullable=False),
        sa.Column("device", sa.String(80), nullable=False),
        sa.Column("before", sa.String(20)),
        sa.Column("after", sa.String(20)),
        sa.Column("symptom", sa.Text, nullable=False),
        sa.Column("move", sa.Text, nullable=False),
        sa.Column("excerpt", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("effect", sa.Float, nullable=False),
        sa.Column("use_count", sa.Integer, nullable=False),
        sa.Column("failure_count", sa.Integer, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_lessons_revision", "lessons", ["revision"])
    lesson_meta = op.create_table(
        "lesson_meta",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("store", sa.String(40), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("last_removal", sa.Integer, nullable=False),
        sa.Column("seeds", sa.String(64), nullable=False),
    )
    op.bulk_insert(
        lesson_meta,
        [{"id": 1, "store": uuid.uuid4().hex, "version": 0, "last_removal": 0, "seeds": ""}],
    )
    op.create_table(
        "lesson_credits",
        sa.Column("request_id", sa.String(300), primary_key=True),
    )
    op.create_table(
        "lesson_vectors",
        sa.Column("embedder", sa.String(200), primary_key=True),
        sa.Column("passage", sa.String(64), primary_key=True),
        sa.Column("vector", sa.LargeBinary, nullable=False),
    )
