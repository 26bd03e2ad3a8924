"""Tables of the store. Numbers that queries need are columns; the rest is JSON text.

Changes need a new file in `migrations/versions` and its id in `HEAD`.
"""

from typing import Final

import sqlalchemy as sa

from kernel_foundry.sql.migrate import SchemaLocation

HEAD: Final = "0003"
"""Schema version this code reads and writes."""

SCHEMA: Final = SchemaLocation(head=HEAD, migrations="archive_svc.store:migrations")

REQUEST_ID_LENGTH: Final = 200
"""Most characters of a request_id."""

JOURNAL_LENGTH: Final = 64 * 1024
"""Most characters of a journal, see `archive_svc.run.journal`: enough for its most events."""

FEATURES_LENGTH: Final = 100
"""Most characters of the features of `kernel_foundry.domain.launch_facts`, with blanks between."""

LARGEST_INTEGER: Final = 2**31 - 1
"""That every database's integer columns hold, those of ids among them."""

METADATA = sa.MetaData()

RUNS = sa.Table(
    "runs",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(200), nullable=False, unique=True),
    sa.Column("spec", sa.Text, nullable=False),
    sa.Column("state", sa.String(20), nullable=False),
    sa.Column("created_unix_s", sa.Float, nullable=False),
    # What follows is brought up to date by each insertion: no reader adds up a run's history.
    sa.Column("evaluation_count", sa.Integer, nullable=False, server_default=sa.text("0")),
    sa.Column("selected_count", sa.Integer, nullable=False, server_default=sa.text("0")),
    sa.Column("cost_usd", sa.Float, nullable=False, server_default=sa.text("0")),
    sa.Column("best_sequence", sa.Integer),
    sa.Column("best_fitness", sa.Float),
    sa.Column("best_speedup", sa.Float),
    # The loop that works on it, as JSON, and until when the run is its own; "": none does.
    sa.Column("holder", sa.Text, nullable=False, server_default=sa.text("''")),
    sa.Column("held_until_unix_s", sa.Float, nullable=False, server_default=sa.text("0")),
    sa.Column("budget", sa.Text, nullable=False, server_default=sa.text("''")),  # the loop's, JSON
    sa.Column("steering_count", sa.Integer, nullable=False, server_default=sa.text("0")),
    sa.Column("owner", sa.String(80), nullable=False, server_default=sa.text("''")),  # "": nobody's
)

is_there: Final = RUNS.c.spec != ""
"""Condition for runs that were not deleted."""


def emptied(run_id: int) -> dict[str, object]:
    """Return the columns of a run that was deleted; no run can be called so."""
    return {
        "name": f"#{run_id}",
        "spec": "",
        "evaluation_count": 0,
        "steering_count": 0,
        "best_sequence": None,
        "best_fitness": None,
        "best_speedup": None,
    }


EVALUATIONS = sa.Table(
    "evaluations",
    METADATA,
    sa.Column("run_id", sa.Integer, sa.ForeignKey("runs.id"), primary_key=True),
    sa.Column("sequence", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("request_id", sa.String(REQUEST_ID_LENGTH), nullable=False),
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
    sa.Column("features", sa.String(FEATURES_LENGTH), nullable=False, server_default=sa.text("''")),
    sa.Column("speedup", sa.Float),
    sa.Column("has_parameters", sa.Boolean, nullable=False),
    sa.Column("island", sa.String(40), nullable=False),
    sa.Column("selection", sa.Integer),
    sa.Column("cost_usd", sa.Float, nullable=False),
    sa.Column("archived_unix_s", sa.Float, nullable=False),
    sa.Column("journal", sa.String(JOURNAL_LENGTH), nullable=False),
    sa.UniqueConstraint("run_id", "request_id", name="uq_evaluations_request_id"),
    sa.Index("ix_evaluations_digest", "run_id", "digest", "sequence"),
    # Rows lie in the order of their key: a whole run is read in one sweep.
    sqlite_with_rowid=False,
)
"""The numbers of evaluations. `parent_sequence` and `gain` are of a child's first evaluation: which
one of its parent was the newest then, and how much fitter the child is. `journal` is what
`archive_svc.run.journal` says; "" where nothing is known."""

TEXTS = sa.Table(
    "evaluation_texts",
    METADATA,
    sa.Column("run_id", sa.Integer, primary_key=True),
    sa.Column("sequence", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("candidate", sa.Text, nullable=False),
    sa.Column("evaluation", sa.Text, nullable=False),
    sa.ForeignKeyConstraint(["run_id", "sequence"], ["evaluations.run_id", "evaluations.sequence"]),
)
"""Candidate and verdict of each evaluation; apart, since the numbers are read far more often."""

STEERING = sa.Table(
    "steering",
    METADATA,
    sa.Column("run_id", sa.Integer, sa.ForeignKey("runs.id"), primary_key=True),
    sa.Column("sequence", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("steered_unix_s", sa.Float, nullable=False),
    sa.Column("evaluation_count", sa.Integer, nullable=False),
    sa.Column("steering", sa.Text, nullable=False),  # what was asked, JSON
)
"""Steering events of runs, see `kernel_foundry.domain.steering`."""
