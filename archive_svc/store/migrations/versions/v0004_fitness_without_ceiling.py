"""Fitness counted again without a ceiling; verdicts without the bound that was none."""

import json
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

from archive_svc.store.upgraded_verdict import VerdictUpgrade

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_BATCH = 200
"""Rows in memory at a time: their texts are several kilobytes each."""

_AFTER = sa.text(
    "SELECT told.sequence, digest, outcome, speedup, parent_sequence, evaluation FROM told "
    "JOIN told_texts ON told_texts.run_id = told.run_id AND told_texts.sequence = told.sequence "
    "WHERE told.run_id = :run_id AND told.sequence > :after "
    f"ORDER BY told.sequence LIMIT {_BATCH}"
)
_SET_TEXT = sa.text(
    "UPDATE told_texts SET evaluation = :evaluation WHERE run_id = :run_id AND sequence = :sequence"
)
# The recorded selections went by the old fitness: nobody can make them again.
_SET_NUMBERS = sa.text(
    "UPDATE told SET fitness = :fitness, optimistic = :optimistic, gain = :gain, journal = '' "
    "WHERE run_id = :run_id AND sequence = :sequence"
)
_SET_BEST = sa.text(
    "UPDATE runs SET best_sequence = :sequence, best_fitness = :fitness, best_speedup = :speedup "
    "WHERE id = :run_id"
)


def upgrade() -> None:
    """Count again run by run."""
    connection = op.get_bind()
    for run_id in connection.execute(sa.text("SELECT id FROM runs")).scalars().all():
        _upgrade_run(connection, run_id)


def _upgrade_run(connection: sa.Connection, run_id: int) -> None:
    verdicts = VerdictUpgrade()
    fitness_at: dict[int, float] = {}
    newest: dict[str, dict[str, Any]] = {}
    for batch in _batches(connection, run_id):
        numbers, texts = [], []
        for row in batch:
            verdict = verdicts.apply(json.loads(row["evaluation"]))
            fitness_at[row["sequence"]] = verdict["fitness"]
            parent = row["parent_sequence"]
            key = {"run_id": run_id, "sequence": row["sequence"]}
            numbers.append(
                {
                    **key,
                    "fitness": verdict["fitness"],
                    "optimistic": verdict["optimistic_fitness"],
                    "gain": None if parent is None else verdict["fitness"] - fitness_at[parent],
                }
            )
            texts.append({**key, "evaluation": json.dumps(verdict, separators=(",", ":"))})
            newest[row["digest"]] = {**key, "fitness": verdict["fitness"]} | {
                "outcome": row["outcome"],
                "speedup": row["speedup"],
            }
        connection.execute(_SET_NUMBERS, numbers)
        connection.execute(_SET_TEXT, texts)
    passed = [one for one in newest.values() if one["outcome"] == "passed"]
    if passed:
        best = min(passed, key=lambda one: (-one["fitness"], one["sequence"]))
        connection.execute(_SET_BEST, {k: v for k, v in best.items() if k != "outcome"})


def _batches(connection: sa.Connection, run_id: int) -> Iterator[list[dict[str, Any]]]:
    after = 0
    while rows := connection.execute(_AFTER, {"run_id": run_id, "after": after}).mappings().all():
        yield [dict(row) for row in rows]
        after = rows[-1]["sequence"]
