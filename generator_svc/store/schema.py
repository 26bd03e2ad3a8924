"""Tables of the generator's store.

Changes need a new file in `migrations/versions` and its id in `HEAD`.
"""

from typing import Final

import sqlalchemy as sa

from kernel_foundry.sql.migrate import SchemaLocation

HEAD: Final = "0002"
"""Schema version this code reads and writes."""

SCHEMA: Final = SchemaLocation(
    head=HEAD,
    migrations="generator_svc.store:migrations",
    version_table="generator_alembic_version",
)

METADATA = sa.MetaData()

EXCHANGES = sa.Table(
    "exchanges",
    METADATA,
    sa.Column("run", sa.String(200), primary_key=True),
    sa.Column("sequence", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("name", sa.String(120), nullable=False),
)
"""Which exchanges a run made, in order; `name` is that of the file that holds the exchange."""

OWNERS = sa.Table(
    "owners",
    METADATA,
    sa.Column("run", sa.String(200), primary_key=True),
    sa.Column("owner", sa.String(80), nullable=False),
)
"""Whose each run is; "" for nobody, where no token was needed."""

SPEND = sa.Table(
    "spend",
    METADATA,
    sa.Column("run", sa.String(200), primary_key=True),
    sa.Column("model", sa.String(200), primary_key=True),
    sa.Column("requests", sa.Integer, nullable=False),
    sa.Column("retries", sa.Integer, nullable=False),
    sa.Column("prompt_tokens", sa.BigInteger, nullable=False),
    sa.Column("completion_tokens", sa.BigInteger, nullable=False),
    sa.Column("usd", sa.Float, nullable=False),
)
"""Sums of each run and model."""

PROPOSALS = sa.Table(
    "proposals",
    METADATA,
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
    sa.Column("candidate", sa.String(64), nullable=False, server_default=""),
    sa.Column("idea", sa.String(400), nullable=False, server_default=""),
    # What follows is known once the proposal was judged.
    sa.Column("outcome", sa.String(30)),
    sa.Column("gain", sa.Float),
    sa.Column("speedup", sa.Float),
    sa.Column("remark", sa.String(400), nullable=False, server_default=""),
    sa.Column("judged_unix_s", sa.Float),
    sa.Column("learnt", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Index("ix_proposals_judged", "judged_unix_s"),
)
"""How each proposal was made, and what came of it. `lessons`, `parent_findings`, `mechanisms` are
JSON lists. `parent_findings` has the kinds that a repair was asked to mend, and is empty otherwise;
`mechanisms` has what acted in the prompt. `candidate` is a digest, empty where the reply held none;
`idea` how its reasoning begins; `remark` its first error, or why it is suspect."""

SECTIONS = sa.Table(
    "sections",
    METADATA,
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
"""Guidance that evolves, one row for each text ever tried. `uses` counts judged proposals,
`outcomes` is a JSON object that counts them by outcome."""

SECTION_CREDITS = sa.Table(
    "section_credits",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("request_id", sa.String(240), nullable=False, unique=True),
    sa.Column("section", sa.Integer, sa.ForeignKey("sections.id"), nullable=False),
    sa.Column("language", sa.String(10), nullable=False),
    sa.Column("run", sa.String(200), nullable=False),
    sa.Column("gain", sa.Float, nullable=False),
    sa.Index("ix_section_credits_language", "language", "id"),
)
"""The gain of every judged proposal."""

SECTION_EDITS = sa.Table(
    "section_edits",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("run", sa.String(200), nullable=False),
    sa.Column("language", sa.String(10), nullable=False),
    sa.Column("parent", sa.Integer, sa.ForeignKey("sections.id"), nullable=False),
    sa.Column("child", sa.Integer, sa.ForeignKey("sections.id")),
    sa.Column("result", sa.String(20), nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("last_credit", sa.Integer, nullable=False),
    sa.Column("created_unix_s", sa.Float, nullable=False),
    sa.Index("ix_section_edits_language", "language", "id"),
)
"""Every time a model was asked for better guidance. `reason` is its diagnosis, or why its edit was
not taken; `last_credit` is the id of the language's newest credit then."""

LESSONS = sa.Table(
    "lessons",
    METADATA,
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
    sa.Index("ix_lessons_revision", "revision"),
    sqlite_autoincrement=True,  # an id that proposals remember is never given to another lesson
)
"""The lessons. `key` names a hand-written one over all versions of its text; `revision` is the
version of the table at which the row changed last; `findings`, `experts`, `before` and `after` are
JSON lists."""

LESSON_META = sa.Table(
    "lesson_meta",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("store", sa.String(40), nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("last_removal", sa.Integer, nullable=False),
    sa.Column("seeds", sa.String(64), nullable=False),
)
"""One row. `store` is a random name, `version` rises with every change of the lessons,
`last_removal` is the version at which one was removed last, `seeds` the digest of the hand-written
ones as they were taken in."""

LESSON_CREDITS = sa.Table(
    "lesson_credits",
    METADATA,
    sa.Column("request_id", sa.String(300), primary_key=True),
)
"""Requests whose outcome was credited to lessons already, so that each counts once."""

LESSON_VECTORS = sa.Table(
    "lesson_vectors",
    METADATA,
    sa.Column("embedder", sa.String(200), primary_key=True),
    sa.Column("passage", sa.String(64), primary_key=True),
    sa.Column("vector", sa.LargeBinary, nullable=False),
)
"""Embeddings of lessons: float32 values, by digest of the passage."""
