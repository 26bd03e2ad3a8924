"""Gains in today's fitness, and the finding about a bound under its new name.

Fitness was 0.2 + 0.8 S, with S clipped at a bound, and is 0.2 + ln(1 + 8 s). Near the baseline's
speed, where most gains were made, a gain of x % was worth a quarter of what it is worth now, and
so was a seed that passed: gains are multiplied by four, so that earlier proposals of a model or a
prompt weigh as much as later ones. A parent's fitness is counted again from its speed-up.
"""

import json
import math
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_GROWTH = 4.0


def upgrade() -> None:
    """Rescale gains; rename the finding."""
    connection = op.get_bind()
    for statement in (
        "UPDATE proposals SET gain = gain * :growth WHERE gain IS NOT NULL",
        "UPDATE section_credits SET gain = gain * :growth",
        "UPDATE sections SET gain_sum = gain_sum * :growth, "
        "gain_square_sum = gain_square_sum * :growth * :growth",
    ):
        connection.execute(sa.text(statement), {"growth": _GROWTH})
    _count_parents_again(connection)
    _rename(connection, "lessons", ("id",), "findings")
    _rename(connection, "proposals", ("run", "selection"), "parent_findings")


def _count_parents_again(connection: sa.Connection) -> None:
    """A failed parent's fitness is as it was."""
    table = sa.table("proposals", *map(sa.column, ("run", "selection", "parent_speedup")))
    rows = connection.execute(sa.select(table).where(table.c.parent_speedup.is_not(None))).all()
    statement = sa.text(
        "UPDATE proposals SET parent_fitness = :fitness WHERE run = :run AND selection = :selection"
    )
    for row in rows:
        fitness = 0.2 + math.log1p(8 * row.parent_speedup)
        key = {"run": row.run, "selection": row.selection}
        connection.execute(statement, {"fitness": fitness, **key})


def _rename(connection: sa.Connection, name: str, key: tuple[str, ...], column: str) -> None:
    """Rename the finding in a column of JSON lists."""
    table = sa.table(name, *map(sa.column, (*key, column)))
    where = table.c[column].like('%"roofline"%')
    for row in connection.execute(sa.select(table).where(where)).mappings().all():
        kinds: list[Any] = json.loads(row[column])
        renamed = ["traffic_bound" if kind == "roofline" else kind for kind in kinds]
        same = sa.and_(*(table.c[part] == row[part] for part in key))
        values = {column: json.dumps(renamed)}
        connection.execute(sa.update(table).where(same).values(values))
