"""The suites of this machine and where each of their runs stands.

Synchronous; every write is one transaction that is on disk when the method returns. What was judged
in a run is the archive's to know: a suite whose store is lost goes on from its runs.
"""

import time
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from kernel_foundry.domain.archive import LeaseHolder
from kernel_foundry.domain.plain import from_json, to_json
from kernel_foundry.errors import AlreadyExistsError, InvalidArgumentError, RunHeldError
from kernel_foundry.process_identity import is_gone_from_host
from kernel_foundry.sdk.suite.entry import EntryState, RunProgress, SuiteEntry, entries_of
from kernel_foundry.sdk.suite.plan import SuitePlan
from kernel_foundry.sdk.suite.store.schema import ENTRIES, SCHEMA, SUITES
from kernel_foundry.sdk.suite.suite import Suite
from kernel_foundry.sql.engine import open_engine
from kernel_foundry.sql.failures import store_errors


class SuiteStore:
    """One SQLite file.

    Args:
        path: Of the file; it is created when it is not there.

    Raises:
        StoreUnavailableError, CorruptArchiveError: as `open_engine`; also from every method.
    """

    def __init__(self, path: Path) -> None:
        self._engine, self._shown_url = open_engine(f"sqlite:///{path}", SCHEMA)
        self._readers = self._engine.execution_options(reader=True)

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    def create(self, plan: SuitePlan) -> Suite:
        """Store a plan; none of its runs is begun.

        Raises:
            AlreadyExistsError: a suite has that name.
        """
        values = {
            "name": plan.name,
            "plan": to_json(plan),
            "created_unix_s": time.time(),
            "used_seconds": 0.0,
            "holder": "",
        }
        with store_errors(self._shown_url):
            try:
                with self._engine.begin() as connection:
                    connection.execute(SUITES.insert(), values)
            except sa.exc.IntegrityError as error:
                raise AlreadyExistsError(
                    f"suite {plan.name} exists: choose another --name, or go on with it by"
                    f" --resume --name {plan.name}",
                    suite=plan.name,
                ) from error
        return self.find(plan.name)

    def find(self, name: str = "") -> Suite:
        """Return a suite; "" is the newest.

        Raises:
            InvalidArgumentError: there is none.
        """
        query = sa.select(SUITES).order_by(SUITES.c.id.desc()).limit(1)
        if name:
            query = query.where(SUITES.c.name == name)
        with store_errors(self._shown_url), self._readers.connect() as connection:
            row = connection.execute(query).first()
            if row is None:
                raise InvalidArgumentError(
                    f"no suite called {name!r}" if name else "there is no suite yet", field="suite"
                )
            kept = sa.select(ENTRIES).where(ENTRIES.c.suite_id == row.id)
            return _suite(row, connection.execute(kept).all())

    def names(self) -> tuple[str, ...]:
        """Return the names of all suites, newest first."""
        query = sa.select(SUITES.c.name).order_by(SUITES.c.id.desc())
        with store_errors(self._shown_url), self._readers.connect() as connection:
            return tuple(connection.execute(query).scalars())

    def hold(self, suite: Suite, holder: LeaseHolder) -> None:
        """Make a suite a process's own until that ends or frees it.

        Raises:
            RunHeldError: another process works on it.
        """
        with store_errors(self._shown_url), self._engine.begin() as connection:
            query = sa.select(SUITES.c.holder).where(SUITES.c.id == suite.id)
            found = connection.execute(query).scalar_one()
            other = from_json(LeaseHolder, found) if found else None
            if other is not None and not is_gone_from_host(other):
                raise RunHeldError(
                    f"suite {suite.plan.name} is being worked on by process {other.process_id} on"
                    f" {other.host}: stop that process first",
                    suite=suite.plan.name,
                    host=other.host,
                    process=str(other.process_id),
                )
            self._set(connection, suite, holder=to_json(holder))

    def delete(self, suite: Suite) -> None:
        """Forget a suite; its runs stay in the archive."""
        with store_errors(self._shown_url), self._engine.begin() as connection:
            connection.execute(ENTRIES.delete().where(ENTRIES.c.suite_id == suite.id))
            connection.execute(SUITES.delete().where(SUITES.c.id == suite.id))

    def free(self, suite: Suite) -> None:
        """Let others work on a suite."""
        with store_errors(self._shown_url), self._engine.begin() as connection:
            self._set(connection, suite, holder="")

    def replace_plan(self, suite: Suite, plan: SuitePlan) -> None:
        """Give a suite another budget; its runs stay as they are."""
        suite.plan = plan
        with store_errors(self._shown_url), self._engine.begin() as connection:
            self._set(connection, suite, plan=to_json(plan))

    def write(self, suite: Suite, entry: SuiteEntry) -> None:
        """Record where one run of a suite stands, and the time that the suite has used."""
        key = {"suite_id": suite.id, "number": entry.number}
        values = {"state": entry.state.value, "progress": to_json(entry.progress)}
        where = (ENTRIES.c.suite_id == suite.id) & (ENTRIES.c.number == entry.number)
        with store_errors(self._shown_url), self._engine.begin() as connection:
            connection.execute(ENTRIES.delete().where(where))
            if entry.state is not EntryState.WAITING:
                connection.execute(ENTRIES.insert(), {**key, **values})
            self._set(connection, suite, used_seconds=suite.used_seconds)

    def _set(self, connection: sa.Connection, suite: Suite, **values: Any) -> None:
        connection.execute(SUITES.update().where(SUITES.c.id == suite.id).values(values))


def _suite(row: Any, kept: Any) -> Suite:
    plan = from_json(SuitePlan, row.plan)
    entries = entries_of(plan)
    for one in kept:
        entry = entries[one.number]
        entry.state = EntryState(one.state)
        entry.progress = from_json(RunProgress, one.progress)
    return Suite(
        id=row.id,
        plan=plan,
        entries=entries,
        created_unix_s=row.created_unix_s,
        used_seconds=row.used_seconds,
    )
