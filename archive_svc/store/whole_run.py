"""Whole runs in and out of a store, in batches.

For files that carry them between stores (`archive_svc.run.run_file`) and for replays
(`archive_svc.run.replay`).
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import sqlalchemy as sa

from archive_svc.store.leases import state_of
from archive_svc.store.rows import PASSED, WHOLE, EvaluationRow
from archive_svc.store.schema import EVALUATIONS, LARGEST_INTEGER, RUNS, SCHEMA, TEXTS, is_there
from archive_svc.store.steering import steering_after, write_steering
from kernel_foundry.domain.archive import RunSpec, RunState
from kernel_foundry.domain.plain import from_json, to_json
from kernel_foundry.domain.steering import SteeringEvent
from kernel_foundry.errors import InvalidArgumentError
from kernel_foundry.sql.engine import open_engine
from kernel_foundry.sql.failures import store_errors

BATCH: Final = 200
"""Evaluations in memory at a time: each has several kilobytes of text."""

_RUN: Final = sa.select(RUNS).where(is_there).order_by(RUNS.c.id.desc()).limit(1)
_BATCH_AFTER: Final = (
    WHOLE.where(
        EVALUATIONS.c.run_id == sa.bindparam("run"),
        EVALUATIONS.c.sequence > sa.bindparam("after"),
    )
    .order_by(EVALUATIONS.c.sequence)
    .limit(BATCH)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHead:
    """A run without its evaluations."""

    spec: RunSpec
    state: RunState
    created_unix_s: float
    evaluation_count: int
    selected_count: int
    steering: tuple[SteeringEvent, ...] = ()


def check_columns(numbers: Mapping[str, Any]) -> None:
    """Refuse what the columns cannot hold: SQLite takes it, PostgreSQL fails half-way.

    Args:
        numbers: As of `EvaluationRow`.

    Raises:
        InvalidArgumentError: it says which column.
    """
    for name, value in numbers.items():
        kind = EVALUATIONS.c[name].type
        if isinstance(value, str):
            assert isinstance(kind, sa.String)  # the columns of texts
            is_held = len(value) <= (kind.length or 0) and "\0" not in value and _is_utf8(value)
        elif isinstance(value, float):
            is_held = math.isfinite(value)
        else:
            is_held = not isinstance(value, int) or abs(value) <= LARGEST_INTEGER
        if not is_held:
            raise InvalidArgumentError(f"{name} is more than the store can hold", field=name)


def _is_utf8(text: str) -> bool:
    """Return whether `text` has no half of a character, as JSON's escapes may give."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class WholeRuns:
    """Reads and writes the runs of one store as wholes.

    Args:
        url: As of `Store`; raises as that.
    """

    def __init__(self, url: str) -> None:
        self._engine, self._shown_url = open_engine(url, SCHEMA)
        self._readers = self._engine.execution_options(reader=True)

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    def find(self, name: str) -> tuple[int, RunHead] | None:
        """Return id and head of the run called `name`, the newest for "", or None."""
        with store_errors(self._shown_url), self._readers.connect() as connection:
            row = connection.execute(_RUN.where(RUNS.c.name == name) if name else _RUN).first()
            if row is None:
                return None
            return row.id, _head(row, steering_after(connection, row.id, 0, row.steering_count))

    def evaluations(self, run_id: int) -> Iterator[Any]:
        """Yield the evaluations of a run in order, each a row of `rows.WHOLE`."""
        after = 0
        while True:
            with store_errors(self._shown_url), self._readers.connect() as connection:
                batch = connection.execute(_BATCH_AFTER, {"run": run_id, "after": after}).all()
            if not batch:
                return
            yield from batch
            after = batch[-1].sequence

    def insert(self, head: RunHead, evaluations: Iterable[EvaluationRow]) -> bool:
        """Insert a run with all its evaluations, in one transaction.

        Returns:
            False when its name is taken: nothing was written.
        """
        rows = iter(evaluations)
        with store_errors(self._shown_url):
            try:
                with self._engine.begin() as connection:
                    run_id = _insert_head(connection, head)
                    write_steering(connection, run_id, head.steering)
                    history = _History(run_id)
                    while batch := list(islice(rows, BATCH)):
                        numbers = [history.add(r.numbers) for r in batch]
                        connection.execute(EVALUATIONS.insert(), numbers)
                        first = history.evaluation_count - len(batch) + 1
                        texts = [
                            {
                                "run_id": run_id,
                                "sequence": sequence,
                                "candidate": r.candidate,
                                "evaluation": r.evaluation,
                            }
                            for sequence, r in enumerate(batch, start=first)
                        ]
                        connection.execute(TEXTS.insert(), texts)
                    sums = RUNS.update().where(RUNS.c.id == run_id).values(history.sums())
                    connection.execute(sums)
            except _NameTakenError:
                return False
        return True


class _NameTakenError(Exception):
    """Another run has the name."""


class _History:
    """The sums over a run's evaluations, and the columns of each that depend on earlier ones."""

    def __init__(self, run_id: int) -> None:
        self.evaluation_count = 0
        self._run_id = run_id
        self._cost_usd = 0.0
        self._newest: dict[str, tuple[int, str, float, float | None]] = {}
        """Sequence, outcome, fitness and speed-up by digest."""

    def add(self, numbers: dict[str, Any]) -> dict[str, Any]:
        """Return the columns of the next evaluation."""
        self.evaluation_count += 1
        digest, fitness = numbers["digest"], numbers["fitness"]
        parent = self._newest.get(numbers["parent"]) if digest not in self._newest else None
        self._newest[digest] = (
            self.evaluation_count, numbers["outcome"], fitness, numbers["speedup"],
        )  # fmt: skip
        self._cost_usd += numbers["cost_usd"]
        return {
            "run_id": self._run_id,
            "sequence": self.evaluation_count,
            **numbers,
            "parent_sequence": parent[0] if parent else None,
            "gain": fitness - parent[2] if parent else None,
        }

    def sums(self) -> dict[str, Any]:
        """Return the sums beside the run."""
        passed = [n for n in self._newest.values() if n[1] == PASSED]
        best = max(passed, key=lambda n: (n[2], -n[0]), default=None)
        return {
            "evaluation_count": self.evaluation_count,
            "cost_usd": self._cost_usd,
            "best_sequence": best[0] if best else None,
            "best_fitness": best[2] if best else None,
            "best_speedup": best[3] if best else None,
        }


def _insert_head(connection: sa.Connection, head: RunHead) -> int:
    values = {
        "name": head.spec.name,
        "spec": to_json(head.spec),
        "state": head.state.value,
        "created_unix_s": head.created_unix_s,
        "selected_count": head.selected_count,
    }
    try:
        inserted = connection.execute(RUNS.insert(), values)
    except sa.exc.IntegrityError as error:
        raise _NameTakenError from error
    key = inserted.inserted_primary_key
    assert key is not None  # the table has one
    return int(key[0])


def _head(row: Any, steering: tuple[SteeringEvent, ...]) -> RunHead:
    return RunHead(
        spec=from_json(RunSpec, row.spec),
        state=state_of(row),
        created_unix_s=row.created_unix_s,
        evaluation_count=row.evaluation_count,
        selected_count=row.selected_count,
        steering=steering,
    )
