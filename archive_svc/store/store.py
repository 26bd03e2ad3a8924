"""The store's statements: runs in, told evaluations in, both out again.

Synchronous; every write is one transaction that is on disk when the method returns. Knows
nothing of grids and selection.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from archive_svc.store.engine import open_engine, store_errors
from archive_svc.store.schema import RUNS, TOLD
from kernel_foundry.domain.archive import RunSpec, RunState, ToldEvaluation
from kernel_foundry.domain.candidate import Candidate
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.plain import from_json, to_json


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run's own row."""

    id: int
    spec: RunSpec
    state: RunState
    created_unix_s: float
    told_count: int
    """Largest sequence told; sequences have no gaps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldRow:
    """The numbers of a told evaluation, without the texts."""

    sequence: int
    digest: str
    operator: str
    parent: str
    outcome: str
    fitness: float
    optimistic: float
    cell: tuple[int, int, int] | None
    speedup: float | None


class Store:
    """One database.

    Args:
        url: An SQLAlchemy URL, such as `sqlite:////home/me/runs.db`.

    Raises:
        StoreUnavailableError, CorruptArchiveError: as `open_engine`; also from every method.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._engine = open_engine(url)

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    def insert_run(self, spec: RunSpec) -> bool:
        """Insert a run; return False when the name is taken."""
        with store_errors(self._url), self._engine.begin() as connection:
            taken = connection.execute(sa.select(RUNS.c.id).where(RUNS.c.name == spec.name))
            if taken.first() is not None:
                return False
            connection.execute(
                RUNS.insert().values(
                    name=spec.name,
                    spec=to_json(spec),
                    state=RunState.RUNNING.value,
                    created_unix_s=time.time(),
                )
            )
            return True

    def find_run(self, name: str) -> RunRow | None:
        """Return the run called `name`, the newest for "", or None."""
        query = _RUNS.where(RUNS.c.name == name) if name else _RUNS
        with store_errors(self._url), self._reader() as connection:
            row = connection.execute(query.limit(1)).first()
        return _run_row(row) if row is not None else None

    def list_runs(self) -> list[RunRow]:
        """Return all runs, newest first."""
        with store_errors(self._url), self._reader() as connection:
            return [_run_row(row) for row in connection.execute(_RUNS)]

    def set_state(self, run_id: int, state: RunState) -> None:
        """Record where a run stands."""
        with store_errors(self._url), self._engine.begin() as connection:
            connection.execute(RUNS.update().where(RUNS.c.id == run_id).values(state=state.value))

    def find_request(self, run_id: int, request_id: str) -> ToldRow | None:
        """Return what was told under `request_id`, or None."""
        query = _TOLD_NUMBERS.where(TOLD.c.run_id == run_id, TOLD.c.request_id == request_id)
        with store_errors(self._url), self._reader() as connection:
            row = connection.execute(query).first()
        return _told_row(row) if row is not None else None

    def insert_told(
        self,
        run_id: int,
        *,
        sequence: int,
        request_id: str,
        candidate: Candidate,
        evaluation: Evaluation,
        cost_usd: float,
    ) -> bool:
        """Insert told evaluation number `sequence`; return False when that number is taken.

        A taken number means that another process told in between: reload and try again.
        """
        measures = evaluation.measures if evaluation.passed else None
        values = {
            "run_id": run_id,
            "sequence": sequence,
            "request_id": request_id,
            "digest": candidate.digest,
            "operator": candidate.operator.value,
            "parent": candidate.parents[0] if candidate.parents else "",
            "outcome": evaluation.outcome.value,
            "fitness": evaluation.fitness,
            "optimistic": evaluation.optimistic_fitness,
            "memory": measures.memory if measures else None,
            "algorithm": measures.algorithm if measures else None,
            "synchronization": measures.synchronization if measures else None,
            "speedup": evaluation.speedup,
            "cost_usd": cost_usd,
            "told_unix_s": time.time(),
            "candidate": to_json(candidate),
            "evaluation": to_json(evaluation),
        }
        with store_errors(self._url):
            try:
                with self._engine.begin() as connection:
                    connection.execute(TOLD.insert().values(values))
            except sa.exc.IntegrityError:
                return False
        return True

    def told_numbers(self, run_id: int, after: int) -> list[ToldRow]:
        """Return the numbers of everything told with a sequence above `after`, in order."""
        query = _TOLD_NUMBERS.where(TOLD.c.run_id == run_id, TOLD.c.sequence > after)
        with store_errors(self._url), self._reader() as connection:
            return [_told_row(row) for row in connection.execute(query)]

    def told(self, run_id: int, after: int, limit: int) -> list[ToldEvaluation]:
        """Return up to `limit` told evaluations with a sequence above `after`, in order."""
        query = (
            _TOLD_TEXTS.where(TOLD.c.run_id == run_id, TOLD.c.sequence > after)
            .order_by(TOLD.c.sequence)
            .limit(limit)
        )
        with store_errors(self._url), self._reader() as connection:
            return [_told_evaluation(row) for row in connection.execute(query)]

    def told_at(self, run_id: int, sequences: Sequence[int]) -> dict[int, ToldEvaluation]:
        """Return the told evaluations with these sequences, by sequence."""
        query = _TOLD_TEXTS.where(TOLD.c.run_id == run_id, TOLD.c.sequence.in_(sequences))
        with store_errors(self._url), self._reader() as connection:
            found = [_told_evaluation(row) for row in connection.execute(query)]
        return {t.sequence: t for t in found}

    def cost_usd(self, run_id: int) -> float:
        """Return what the told evaluations of a run cost."""
        query = sa.select(sa.func.sum(TOLD.c.cost_usd)).where(TOLD.c.run_id == run_id)
        with store_errors(self._url), self._reader() as connection:
            return connection.execute(query).scalar() or 0.0

    def _reader(self) -> sa.Connection:
        return self._engine.connect().execution_options(reader=True)


_TOLD_COUNT = (
    sa.select(sa.func.coalesce(sa.func.max(TOLD.c.sequence), 0))
    .where(TOLD.c.run_id == RUNS.c.id)
    .scalar_subquery()
)

_RUNS = sa.select(RUNS, _TOLD_COUNT.label("told_count")).order_by(RUNS.c.id.desc())

_TOLD_NUMBERS = sa.select(
    TOLD.c.sequence,
    TOLD.c.digest,
    TOLD.c.operator,
    TOLD.c.parent,
    TOLD.c.outcome,
    TOLD.c.fitness,
    TOLD.c.optimistic,
    TOLD.c.memory,
    TOLD.c.algorithm,
    TOLD.c.synchronization,
    TOLD.c.speedup,
).order_by(TOLD.c.sequence)

_TOLD_TEXTS = sa.select(
    TOLD.c.sequence,
    TOLD.c.candidate,
    TOLD.c.evaluation,
    TOLD.c.told_unix_s,
    TOLD.c.cost_usd,
)


def _run_row(row: Any) -> RunRow:
    return RunRow(
        id=row.id,
        spec=from_json(RunSpec, row.spec),
        state=RunState(row.state),
        created_unix_s=row.created_unix_s,
        told_count=row.told_count,
    )


def _told_row(row: Any) -> ToldRow:
    has_cell = row.memory is not None
    return ToldRow(
        sequence=row.sequence,
        digest=row.digest,
        operator=row.operator,
        parent=row.parent,
        outcome=row.outcome,
        fitness=row.fitness,
        optimistic=row.optimistic,
        cell=(row.memory, row.algorithm, row.synchronization) if has_cell else None,
        speedup=row.speedup,
    )


def _told_evaluation(row: Any) -> ToldEvaluation:
    return ToldEvaluation(
        sequence=row.sequence,
        candidate=from_json(Candidate, row.candidate),
        evaluation=from_json(Evaluation, row.evaluation),
        told_unix_s=row.told_unix_s,
        cost_usd=row.cost_usd,
    )
