"""The store: runs and their evaluations in, and out again.

Synchronous; every write is one transaction that is on disk when the method returns. Several
threads and processes may use one database at once. Whole runs, for files: `whole_run.py`.
"""

import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import sqlalchemy as sa

from archive_svc.grids.result import Result
from archive_svc.store.insert import LOCK_RUN, check_row, find_request, insert_evaluation
from archive_svc.store.leases import check_lease, read_lease, state_of, write_lease, write_state
from archive_svc.store.rows import (
    RESULTS,
    TRANSITIONS,
    WHOLE,
    NewEvaluation,
    RunRow,
    archived_evaluation,
    evaluation_row,
    result_of,
    transition,
)
from archive_svc.store.schema import (
    EVALUATIONS,
    LARGEST_INTEGER,
    RUNS,
    SCHEMA,
    STEERING,
    TEXTS,
    emptied,
    is_there,
)
from archive_svc.store.steering import insert_steering, steering_after
from kernel_foundry.domain.archive import (
    ArchivedEvaluation,
    LeaseHolder,
    RunBudget,
    RunSpec,
    RunState,
)
from kernel_foundry.domain.gradient import Transition
from kernel_foundry.domain.plain import PlainError, from_json, to_json
from kernel_foundry.domain.run_name import is_run_name
from kernel_foundry.domain.steering import Steering, SteeringEvent
from kernel_foundry.errors import AlreadyExistsError, CorruptArchiveError, RunNotFoundError
from kernel_foundry.sql.engine import open_engine
from kernel_foundry.sql.failures import store_errors
from kernel_foundry.sql.prepared import PreparedStatement

_BUT_SPEC: Final = tuple(c for c in RUNS.c if c is not RUNS.c.spec)
_RUNS: Final = sa.select(*_BUT_SPEC).where(is_there).order_by(RUNS.c.id.desc())
_RUN_CALLED: Final = _RUNS.where(RUNS.c.name == sa.bindparam("name"))
_NEWEST_RUN: Final = _RUNS.limit(1)
_RUNS_BEFORE: Final = _RUNS.where(RUNS.c.id < sa.bindparam("before")).limit(sa.bindparam("limit"))
_ID_OF: Final = sa.select(RUNS.c.id).where(RUNS.c.name == sa.bindparam("name"), is_there)
_COUNTS: Final = PreparedStatement(
    sa.select(RUNS.c.evaluation_count, RUNS.c.steering_count).where(
        RUNS.c.id == sa.bindparam("run"), RUNS.c.name == sa.bindparam("name"), is_there
    )
)
_SPEC: Final = sa.select(RUNS.c.spec).where(RUNS.c.id == sa.bindparam("run"))

_RESERVE: Final = (
    RUNS.update()
    .where(RUNS.c.id == sa.bindparam("run"))
    .values(selected_count=RUNS.c.selected_count + sa.bindparam("count"))
)

_AFTER = (
    EVALUATIONS.c.run_id == sa.bindparam("run"),
    EVALUATIONS.c.sequence > sa.bindparam("after"),
)
_RESULTS_AFTER: Final = RESULTS.where(*_AFTER).order_by(EVALUATIONS.c.sequence)
_JOURNALS_AFTER: Final = (
    sa.select(EVALUATIONS.c.journal).where(*_AFTER).order_by(EVALUATIONS.c.sequence)
)
_WHOLE_AFTER: Final = (
    WHOLE.where(*_AFTER).order_by(EVALUATIONS.c.sequence).limit(sa.bindparam("limit"))
)
_WHOLE_AT: Final = WHOLE.where(
    EVALUATIONS.c.run_id == sa.bindparam("run"),
    EVALUATIONS.c.sequence.in_(sa.bindparam("sequences", expanding=True)),
)
_TRANSITIONS_AFTER: Final = (
    TRANSITIONS.where(*_AFTER).order_by(EVALUATIONS.c.sequence).limit(sa.bindparam("limit"))
)

_SPECS_KEPT: Final = 128
"""Specs of runs in memory; each has up to a few megabytes."""


class Store:
    """One database.

    Args:
        url: `sqlite:////path/to/runs.db` or `postgresql://user@host/database`.

    Raises:
        InvalidArgumentError: the URL is none of these.
        PackageMissingError: PostgreSQL's driver is not installed.
        StoreUnavailableError, CorruptArchiveError: as `open_engine`; also from every method.
    """

    def __init__(self, url: str) -> None:
        self._engine, self._shown_url = open_engine(url, SCHEMA)
        self._readers = self._engine.execution_options(reader=True)
        self._specs: OrderedDict[int, RunSpec] = OrderedDict()
        """Specs by run id, as of late: nothing of them but the name ever changes, and their tasks
        are long to parse."""

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    def insert_run(self, spec: RunSpec, owner: str = "") -> bool:
        """Insert a run that belongs to a user; return False when the name is taken."""
        values = {
            "name": spec.name,
            "spec": to_json(spec),
            "state": RunState.RUNNING.value,
            "created_unix_s": time.time(),
            "owner": owner,
        }
        with store_errors(self._shown_url):
            try:
                with self._engine.begin() as connection:
                    connection.execute(RUNS.insert(), values)
            except sa.exc.IntegrityError:
                return False
        return True

    def find_run(self, name: str) -> RunRow | None:
        """Return the run called `name`, the newest for "", or None."""
        query = _RUN_CALLED if name else _NEWEST_RUN
        with store_errors(self._shown_url), self._readers.connect() as connection:
            row = connection.execute(query, {"name": name} if name else {}).first()
            return self._run_row(connection, row) if row is not None else None

    def counts(self, run_id: int, name: str) -> tuple[int, int] | None:
        """Return the largest sequences of a run's evaluations and of its steering events.

        None for a run that was deleted, or is called otherwise.
        """
        with store_errors(self._shown_url), self._readers.connect() as connection:
            rows = _COUNTS.run(connection, {"run": run_id, "name": name})
        return (rows[0].evaluation_count, rows[0].steering_count) if rows else None

    def list_runs(
        self, limit: int, *, before: int = LARGEST_INTEGER, owner: str | None = None
    ) -> list[RunRow]:
        """Return up to `limit` runs with an id below `before`, newest first.

        With an owner only that user's, "" for nobody's. One that cannot be read hides no other.
        """
        found: list[RunRow] = []
        query = _RUNS_BEFORE if owner is None else _RUNS_BEFORE.where(RUNS.c.owner == owner)
        with store_errors(self._shown_url), self._readers.connect() as connection:
            while len(found) < limit:
                values = {"before": before, "limit": limit - len(found)}
                rows = connection.execute(query, values).all()
                if not rows:
                    break
                before = rows[-1].id
                for row in rows:
                    with suppress(CorruptArchiveError, PlainError):
                        found.append(self._run_row(connection, row))
        return found

    def run_id(self, name: str) -> int | None:
        """Return the id of the run called `name`, or None; ids rise with each new run."""
        with store_errors(self._shown_url), self._readers.connect() as connection:
            return connection.execute(_ID_OF, {"name": name}).scalar()

    def set_state(self, run_id: int, state: RunState, holder: LeaseHolder | None = None) -> None:
        """Record where a run stands and free it, unless it is another holder's.

        Raises:
            RunNotFoundError: the run was deleted.
        """
        with store_errors(self._shown_url), self._engine.begin() as connection:
            _lock(connection, run_id)
            lease = read_lease(connection, run_id)
            if holder is None or lease.holder in (None, holder):
                write_state(connection, run_id, state)

    def hold(self, run_id: int, holder: LeaseHolder, budget: RunBudget) -> None:
        """Make a run a loop's own from now on.

        Raises:
            RunHeldError: another loop works on it.
            RunNotFoundError: the run was deleted.
        """
        with store_errors(self._shown_url), self._engine.begin() as connection:
            _lock(connection, run_id)
            check_lease(connection, run_id, holder)
            write_lease(connection, run_id, holder, budget)

    def delete_run(self, run_id: int) -> None:
        """Remove a run with all its evaluations.

        Its row stays, empty: no other run ever gets its id, which other processes may know.

        Raises:
            RunHeldError: a loop works on it.
        """
        with store_errors(self._shown_url), self._engine.begin() as connection:
            connection.execute(LOCK_RUN, {"run": run_id})
            check_lease(connection, run_id)
            connection.execute(TEXTS.delete().where(TEXTS.c.run_id == run_id))
            connection.execute(EVALUATIONS.delete().where(EVALUATIONS.c.run_id == run_id))
            connection.execute(STEERING.delete().where(STEERING.c.run_id == run_id))
            connection.execute(RUNS.update().where(RUNS.c.id == run_id).values(emptied(run_id)))

    def rename_run(self, run_id: int, new_name: str) -> None:
        """Give a run another name.

        Raises:
            RunHeldError: a loop works on it.
            AlreadyExistsError: another run has that name.
            RunNotFoundError: the run was deleted.
        """
        with store_errors(self._shown_url):
            try:
                with self._engine.begin() as connection:
                    connection.execute(LOCK_RUN, {"run": run_id})
                    check_lease(connection, run_id)
                    text: str = connection.execute(_SPEC, {"run": run_id}).scalar_one()
                    if not text:
                        raise RunNotFoundError("the run was deleted", run="")
                    spec = replace(from_json(RunSpec, text), name=new_name)
                    values = {"name": new_name, "spec": to_json(spec)}
                    connection.execute(RUNS.update().where(RUNS.c.id == run_id).values(values))
            except sa.exc.IntegrityError as error:
                raise AlreadyExistsError(
                    f"there is a run called {new_name}", run=new_name
                ) from error

    def reserve_selections(self, run_id: int, count: int) -> int:
        """Return the first of `count` numbers of selections that nobody else is given."""
        with store_errors(self._shown_url), self._engine.begin() as connection:
            first: int = connection.execute(LOCK_RUN, {"run": run_id}).one().selected_count
            connection.execute(_RESERVE, {"run": run_id, "count": count})
        return first

    def add(self, run_id: int, new: NewEvaluation, name: str = "") -> tuple[Result, bool]:
        """Store an evaluation, or find that its request was stored before.

        Args:
            run_id: The run.
            new: The evaluation.
            name: What the run has to be called; "": anything.

        Returns:
            The result as stored, and whether its request was stored before: then nothing was
            written. Else its sequence is the run's newest.

        Raises:
            RunNotFoundError: no run has that id, or it is called otherwise.
            AlreadyExistsError: the request_id added another candidate, or the candidate's digest
                another source.
            InvalidArgumentError: a parent is not in this run, or the request_id is empty
                or too long.
        """
        row = evaluation_row(new)  # slow, and needs no lock
        check_row(row)
        with store_errors(self._shown_url):
            try:
                with self._engine.begin() as connection:
                    return insert_evaluation(connection, run_id, row, new.candidate, name), False
            except sa.exc.IntegrityError:
                # A repeat is rare, so the request is looked for only now.
                with self._readers.connect() as connection:
                    earlier = find_request(connection, run_id, row.numbers)
                if earlier is None:
                    raise
                return earlier, True

    def results(self, run_id: int, after: int) -> list[Result]:
        """Return the results of all evaluations with a sequence above `after`, in order."""
        with store_errors(self._shown_url), self._readers.connect() as connection:
            rows = connection.execute(_RESULTS_AFTER, {"run": run_id, "after": after})
            return [result_of(row) for row in rows]

    def journals(self, run_id: int, after: int) -> list[str]:
        """Return the journals of all evaluations with a sequence above `after`, in order."""
        with store_errors(self._shown_url), self._readers.connect() as connection:
            values = {"run": run_id, "after": after}
            return list(connection.execute(_JOURNALS_AFTER, values).scalars())

    def evaluations(self, run_id: int, after: int, limit: int) -> list[ArchivedEvaluation]:
        """Return up to `limit` evaluations with a sequence above `after`, in order."""
        values = {"run": run_id, "after": after, "limit": limit}
        with store_errors(self._shown_url), self._readers.connect() as connection:
            return [archived_evaluation(row) for row in connection.execute(_WHOLE_AFTER, values)]

    def evaluations_at(
        self, run_id: int, sequences: Sequence[int]
    ) -> dict[int, ArchivedEvaluation]:
        """Return the evaluations with these sequences, by sequence."""
        values = {"run": run_id, "sequences": tuple(sequences)}
        with store_errors(self._shown_url), self._readers.connect() as connection:
            found = [archived_evaluation(row) for row in connection.execute(_WHOLE_AT, values)]
        return {t.sequence: t for t in found}

    def transitions(self, run_id: int, after: int, limit: int) -> list[Transition]:
        """Return up to `limit` transitions whose child's sequence is above `after`, in order."""
        values = {"run": run_id, "after": after, "limit": limit}
        with store_errors(self._shown_url), self._readers.connect() as connection:
            return [transition(row) for row in connection.execute(_TRANSITIONS_AFTER, values)]

    def steer(self, run_id: int, steering: Steering) -> SteeringEvent:
        """Add a steering event, as `insert_steering`, which also says what it raises."""
        with store_errors(self._shown_url), self._engine.begin() as connection:
            return insert_steering(connection, run_id, steering)

    def steering(self, run_id: int, after: int, limit: int) -> tuple[SteeringEvent, ...]:
        """Return up to `limit` steering events with a sequence above `after`, in order."""
        with store_errors(self._shown_url), self._readers.connect() as connection:
            return steering_after(connection, run_id, after, limit)

    def _run_row(self, connection: sa.Connection, row: Any) -> RunRow:
        spec = self._specs.get(row.id)
        if spec is None or spec.name != row.name:
            text = connection.execute(_SPEC, {"run": row.id}).scalar_one()
            spec = from_json(RunSpec, text)
            if not is_run_name(spec.name):
                raise CorruptArchiveError(
                    f"the store {self._shown_url} has a run with a name that no run may have",
                    url=self._shown_url,
                )
            self._specs[row.id] = spec
            while len(self._specs) > _SPECS_KEPT:
                self._specs.popitem(last=False)
        return RunRow(
            id=row.id,
            spec=spec,
            state=state_of(row),
            created_unix_s=row.created_unix_s,
            evaluation_count=row.evaluation_count,
            selected_count=row.selected_count,
            cost_usd=row.cost_usd,
            best_sequence=row.best_sequence,
            best_fitness=row.best_fitness,
            best_speedup=row.best_speedup,
            budget=from_json(RunBudget, row.budget) if row.budget else None,
            steering_count=row.steering_count,
            owner=row.owner,
        )


def _lock(connection: sa.Connection, run_id: int) -> None:
    """Let other writers of a run wait until the transaction ends."""
    if connection.execute(LOCK_RUN, {"run": run_id}).first() is None:
        raise RunNotFoundError("the run was deleted", run="")
