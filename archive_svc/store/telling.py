"""One telling as one transaction: find the request, insert, bring the run's sums up to date.

Writers take turns: SQLite's lock is the file's and taken at the start, PostgreSQL's is the
run's row. So sequences have no gaps and no two writers wait for each other.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from archive_svc.store.rows import (
    NUMBERS,
    PASSED,
    Telling,
    ToldOutcome,
    number_values,
    text_values,
    told_numbers,
)
from archive_svc.store.schema import REQUEST_ID_LENGTH, RUNS, TEXTS, TOLD, is_there
from kernel_foundry.domain.candidate import Candidate
from kernel_foundry.domain.plain import from_json
from kernel_foundry.errors import AlreadyExistsError, InvalidArgumentError, RunNotFoundError

LOCK_RUN: Final = (
    sa.select(
        RUNS.c.told_count,
        RUNS.c.selected_count,
        RUNS.c.cost_usd,
        RUNS.c.best_sequence,
        RUNS.c.best_fitness,
        RUNS.c.best_speedup,
    )
    .where(RUNS.c.id == sa.bindparam("run"), is_there)
    .with_for_update()
)

_OF_REQUEST: Final = NUMBERS.where(
    TOLD.c.run_id == sa.bindparam("run"), TOLD.c.request_id == sa.bindparam("request")
)

# Not sorted here: a planner may then look for sequences, not for digests.
_OF_DIGESTS: Final = sa.select(TOLD.c.sequence, TOLD.c.fitness, TOLD.c.digest).where(
    TOLD.c.run_id == sa.bindparam("run"),
    TOLD.c.digest.in_(sa.bindparam("digests", expanding=True)),
)

_TEXT_AT: Final = sa.select(TEXTS.c.candidate).where(
    TEXTS.c.run_id == sa.bindparam("run"), TEXTS.c.sequence == sa.bindparam("at")
)

_LATER = TOLD.alias("later")
_BEST: Final = (
    sa.select(TOLD.c.sequence, TOLD.c.fitness, TOLD.c.speedup)
    .where(
        TOLD.c.run_id == sa.bindparam("run"),
        TOLD.c.outcome == PASSED,
        ~sa.exists().where(
            _LATER.c.run_id == TOLD.c.run_id,
            _LATER.c.digest == TOLD.c.digest,
            _LATER.c.sequence > TOLD.c.sequence,
        ),
    )
    .order_by(TOLD.c.fitness.desc(), TOLD.c.sequence)
    .limit(1)
)

UPDATE_RUN: Final = (
    RUNS.update()
    .where(RUNS.c.id == sa.bindparam("run"))
    .values(
        told_count=sa.bindparam("told_count"),
        cost_usd=sa.bindparam("cost_usd"),
        best_sequence=sa.bindparam("best_sequence"),
        best_fitness=sa.bindparam("best_fitness"),
        best_speedup=sa.bindparam("best_speedup"),
    )
)

LARGEST_TELLING: Final = 16 * 2**20
"""Characters of a candidate and its verdict as JSON, which is longer than their messages. A parent
and its inspirations are one answer, and a quarter of what any answer may have is left."""

INSERT_TOLD: Final = TOLD.insert()
INSERT_TEXTS: Final = TEXTS.insert()


@dataclass(frozen=True, slots=True)
class _Newest:
    """The newest telling of a digest."""

    sequence: int
    fitness: float


def _check_size(texts: Mapping[str, str]) -> None:
    size = sum(map(len, texts.values()))
    if size > LARGEST_TELLING:
        raise InvalidArgumentError(
            f"a candidate and its verdict of {size} characters of JSON, expected at most "
            f"{LARGEST_TELLING}",
            field="evaluation",
        )


class Teller:
    """A telling, ready to be written.

    Everything slow that needs no lock is done when it is made.

    Raises:
        InvalidArgumentError: the request_id cannot be stored, or the texts are too long.
    """

    def __init__(self, run_id: int, telling: Telling) -> None:
        check_request_id(telling.request_id)
        self._run_id = run_id
        self._telling = telling
        self._numbers = number_values(
            telling, time.time() if telling.told_unix_s is None else telling.told_unix_s
        )
        self._texts = text_values(telling)
        _check_size(self._texts)

    def write(self, connection: sa.Connection) -> ToldOutcome:
        """Write it within the transaction of `connection`, unless it was told before.

        Raises:
            RunNotFoundError, AlreadyExistsError, InvalidArgumentError: as `Store.tell`.
        """
        run = connection.execute(LOCK_RUN, {"run": self._run_id}).first()
        if run is None:
            raise RunNotFoundError(f"no run number {self._run_id} in the store")
        of_request = {"run": self._run_id, "request": self._telling.request_id}
        earlier = connection.execute(_OF_REQUEST, of_request).first()
        if earlier is not None:
            return self._repeat(earlier)
        return self._insert(connection, run)

    def _repeat(self, earlier: Any) -> ToldOutcome:
        if earlier.digest != self._numbers["digest"]:
            request_id = self._telling.request_id
            raise AlreadyExistsError(
                f"request {request_id} told another candidate of this run: choose a new "
                "request_id for each evaluation",
                request_id=request_id,
            )
        return ToldOutcome(numbers=told_numbers(earlier), is_repeat=True)

    def _insert(self, connection: sa.Connection, run: Any) -> ToldOutcome:
        candidate = self._telling.candidate
        newest = self._newest(connection, (candidate.digest, *candidate.parents))
        previous = newest.get(candidate.digest)
        if previous is not None:
            self._check_source(connection, previous.sequence)
        for digest in candidate.parents:
            if digest not in newest:
                raise InvalidArgumentError(
                    f"parent {digest} was not told in this run: tell it first, or leave it out",
                    field="candidate.parents",
                    parent=digest,
                )
        # Told again, it is no new child of its parent.
        parent = newest.get(self._numbers["parent"]) if previous is None else None
        sequence = run.told_count + 1
        key = {"run_id": self._run_id, "sequence": sequence}
        numbers = {
            **key,
            **self._numbers,
            "parent_sequence": parent.sequence if parent else None,
            "gain": self._numbers["fitness"] - parent.fitness if parent else None,
        }
        connection.execute(INSERT_TOLD, numbers)
        connection.execute(INSERT_TEXTS, {**key, **self._texts})
        connection.execute(UPDATE_RUN, self._sums(connection, run, sequence, previous))
        columns = [numbers[column.name] for column in NUMBERS.selected_columns]
        return ToldOutcome(numbers=told_numbers(columns), is_repeat=False)

    def _newest(self, connection: sa.Connection, digests: tuple[str, ...]) -> dict[str, _Newest]:
        """Return the newest telling of each of `digests` that was told."""
        found = connection.execute(_OF_DIGESTS, {"run": self._run_id, "digests": digests})
        in_order = sorted(tuple(row) for row in found)
        return {digest: _Newest(sequence, fitness) for sequence, fitness, digest in in_order}

    def _check_source(self, connection: sa.Connection, sequence: int) -> None:
        """Refuse another source under a digest that was told before."""
        text = connection.execute(_TEXT_AT, {"run": self._run_id, "at": sequence}).scalar_one()
        if from_json(Candidate, text).source != self._telling.candidate.source:
            digest = self._telling.candidate.digest
            raise AlreadyExistsError(
                f"candidate {digest} was told with another source under the same digest",
                digest=digest,
            )

    def _sums(
        self, connection: sa.Connection, run: Any, sequence: int, previous: _Newest | None
    ) -> dict[str, Any]:
        """Return the run's row with this telling counted in, which is written already."""
        numbers = self._numbers
        best = (run.best_sequence, run.best_fitness, run.best_speedup)
        is_better = run.best_fitness is None or numbers["fitness"] > run.best_fitness
        if numbers["outcome"] == PASSED and is_better:
            best = (sequence, numbers["fitness"], numbers["speedup"])
        elif previous is not None and previous.sequence == run.best_sequence:
            # The best one was measured again and is worth less: another may be best now.
            best = connection.execute(_BEST, {"run": self._run_id}).first() or (None, None, None)
        return {
            "run": self._run_id,
            "told_count": sequence,
            "cost_usd": run.cost_usd + numbers["cost_usd"],
            "best_sequence": best[0],
            "best_fitness": best[1],
            "best_speedup": best[2],
        }


def check_request_id(request_id: str) -> None:
    """Refuse a request_id that cannot be stored.

    Raises:
        InvalidArgumentError: it is empty, too long, or holds a NUL.
    """
    if not 0 < len(request_id) <= REQUEST_ID_LENGTH or "\0" in request_id:
        raise InvalidArgumentError(
            f"request_id has {len(request_id)} characters, expected 1 to {REQUEST_ID_LENGTH} and "
            "none of them NUL",
            field="request_id",
        )
