"""Whose runs are, as the first who proposed for one said: by name of the run."""

import sqlalchemy as sa

from generator_svc.store.exchanges import one_writer
from generator_svc.store.schema import OWNERS


def claim(connection: sa.Connection, run: str, owner: str) -> str:
    """Give a run that is nobody's yet to a user; return whose it is."""
    one_writer(connection)
    found = connection.execute(sa.select(OWNERS.c.owner).where(OWNERS.c.run == run)).scalar()
    if found is None:
        connection.execute(OWNERS.insert(), {"run": run, "owner": owner})
        return owner
    return str(found)


def forget(connection: sa.Connection, run: str) -> None:
    """Forget whose a run is."""
    connection.execute(OWNERS.delete().where(OWNERS.c.run == run))


def rename(connection: sa.Connection, run: str, new_name: str) -> None:
    """Keep whose a run is under another name."""
    forget(connection, new_name)
    connection.execute(OWNERS.update().where(OWNERS.c.run == run).values(run=new_name))
