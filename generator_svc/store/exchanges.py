"""Which exchanges a run made and what they took: one transaction for each call to a model."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from generator_svc.store.schema import EXCHANGES, SPEND
from kernel_foundry.domain.account import ModelSpend

_ADVISORY_LOCK: Final = 0x6B66_626B
"""Any number, the same for all of us."""

_OF_RUN: Final = EXCHANGES.c.run == sa.bindparam("of_run")
_LAST: Final = sa.select(sa.func.coalesce(sa.func.max(EXCHANGES.c.sequence), 0)).where(_OF_RUN)
_AFTER: Final = (
    sa.select(EXCHANGES.c.sequence, EXCHANGES.c.name)
    .where(_OF_RUN, EXCHANGES.c.sequence > sa.bindparam("after"))
    .order_by(EXCHANGES.c.sequence)
    .limit(sa.bindparam("limit"))
)
_SPEND: Final = (
    sa.select(
        SPEND.c.model,
        SPEND.c.requests,
        SPEND.c.retries,
        SPEND.c.prompt_tokens,
        SPEND.c.completion_tokens,
        SPEND.c.usd,
    )
    .where(SPEND.c.run == sa.bindparam("of_run"))
    .order_by(SPEND.c.model)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallUsage:
    """The usage of one model in one call."""

    requests: int = 0
    retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float = 0.0


def add_call(
    connection: sa.Connection, run: str, *, name: str | None, usage: Mapping[str, CallUsage]
) -> None:
    """Add a call to a run's ledger.

    Args:
        connection: Of the transaction.
        run: Name of the run.
        name: Of the exchange's file; None for a call that no model answered.
        usage: By name of the model.
    """
    one_writer(connection)
    if name is not None:
        last = connection.execute(_LAST, {"of_run": run}).scalar_one()
        connection.execute(EXCHANGES.insert(), {"run": run, "sequence": last + 1, "name": name})
    for model, one in usage.items():
        _add(connection, run, model, one)


def exchange_names(
    connection: sa.Connection, run: str, after: int, limit: int
) -> list[tuple[int, str]]:
    """Return (sequence, name) of up to `limit` exchanges of a run behind `after`, in order."""
    rows = connection.execute(_AFTER, {"of_run": run, "after": after, "limit": limit})
    return [(row.sequence, row.name) for row in rows]


def forget(connection: sa.Connection, run: str) -> tuple[str, ...]:
    """Remove a run's ledger; return the names of the exchanges that no other run made."""
    one_writer(connection)
    others = EXCHANGES.alias("others")
    is_shared = sa.exists().where(others.c.name == EXCHANGES.c.name, others.c.run != run)
    own = sa.select(EXCHANGES.c.name).distinct().where(EXCHANGES.c.run == run, ~is_shared)
    names = tuple(connection.execute(own).scalars())
    connection.execute(EXCHANGES.delete().where(EXCHANGES.c.run == run))
    connection.execute(SPEND.delete().where(SPEND.c.run == run))
    return names


def is_known(connection: sa.Connection, run: str) -> bool:
    """Return whether anything is in the ledger of a run."""
    rows = (table.c.run for table in (EXCHANGES, SPEND))
    return any(
        connection.execute(sa.select(column).where(column == run).limit(1)).first() is not None
        for column in rows
    )


def is_recorded(connection: sa.Connection, name: str) -> bool:
    """Return whether a run made the exchange of a file."""
    found = sa.select(EXCHANGES.c.name).where(EXCHANGES.c.name == name).limit(1)
    return connection.execute(found).first() is not None


def rename(connection: sa.Connection, run: str, new_name: str) -> None:
    """Keep a run's ledger under another name."""
    one_writer(connection)
    for table in (EXCHANGES, SPEND):
        connection.execute(table.update().where(table.c.run == run).values(run=new_name))


def spend(connection: sa.Connection, run: str) -> tuple[ModelSpend, ...]:
    """Return a run's usage of each model, by the model's name."""
    rows = connection.execute(_SPEND, {"of_run": run})
    return tuple(ModelSpend(**row._mapping) for row in rows)


def one_writer(connection: sa.Connection) -> None:
    """Let other writers of the store wait: two that count the same at once would collide."""
    if connection.dialect.name == "postgresql":  # SQLite has one writer anyhow
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_ADVISORY_LOCK)))


def _add(connection: sa.Connection, run: str, model: str, usage: CallUsage) -> None:
    columns = {
        "requests": usage.requests,
        "retries": usage.retries,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "usd": usage.usd,
    }
    sums = {column: SPEND.c[column] + amount for column, amount in columns.items()}
    of_model = sa.and_(SPEND.c.run == run, SPEND.c.model == model)
    if not connection.execute(SPEND.update().where(of_model).values(sums)).rowcount:
        connection.execute(SPEND.insert().values(run=run, model=model, **columns))
