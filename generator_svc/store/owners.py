"""Whose runs are, as the first who proposed for one said: by name of the run."""

import sqlalchemy as sa

from generator_svc.store import exchanges, proposals
from generator_svc.store.schema import OWNERS
from kernel_foundry.caller import caller


def claim(connection: sa.Connection, run: str, owner: str, *, is_proposal: bool) -> str:
    """Return whose a run is: "" for nobody's, `owner` for a new one.

    Args:
        connection: Of the transaction.
        run: Its name.
        owner: Who asks.
        is_proposal: Whether to keep that; only who proposes for a run begins it.
    """
    exchanges.one_writer(connection)
    found = connection.execute(_of(run)).scalar()
    if found is not None:
        return str(found)
    # Nobody knows who made what is kept of it: whoever asks first did not.
    is_kept = exchanges.is_known(connection, run) or proposals.is_known(connection, run)
    whose = "" if is_kept else owner
    if is_proposal:
        connection.execute(OWNERS.insert(), {"run": run, "owner": whose})
    return whose


def is_own(connection: sa.Connection, run: str) -> bool:
    """Return whether somebody has begun a run and the caller may change it.

    What is written late asks for it: the run may be forgotten by then, and its name another user's.
    """
    exchanges.one_writer(connection)
    row = connection.execute(_of(run)).first()
    return row is not None and caller().may_change(row.owner)


def is_known(connection: sa.Connection, run: str) -> bool:
    """Return whether somebody has begun a run, whatever else is kept of it."""
    return connection.execute(_of(run)).first() is not None


def forget(connection: sa.Connection, run: str) -> None:
    """Forget whose a run is."""
    connection.execute(OWNERS.delete().where(OWNERS.c.run == run))


def rename(connection: sa.Connection, run: str, new_name: str) -> None:
    """Keep whose a run is under another name, that of no known run."""
    connection.execute(OWNERS.update().where(OWNERS.c.run == run).values(run=new_name))


def _of(run: str) -> sa.Select[tuple[str]]:
    return sa.select(OWNERS.c.owner).where(OWNERS.c.run == run)
