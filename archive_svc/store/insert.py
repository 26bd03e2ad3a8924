"""One evaluation stored in one transaction: insert, and bring the run's sums up to date.

Writers take turns: SQLite's lock is the file's and taken at the start, PostgreSQL's is the
run's row. So sequences have no gaps and no two writers wait for each other.
"""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from archive_svc.grids.result import Result
from archive_svc.store.rows import PASSED, RESULTS, EvaluationRow, result_of
from archive_svc.store.schema import EVALUATIONS, REQUEST_ID_LENGTH, RUNS, TEXTS, is_there
from kernel_foundry.domain.candidate import Candidate
from kernel_foundry.domain.plain import from_json
from kernel_foundry.errors import AlreadyExistsError, InvalidArgumentError, RunNotFoundError
from kernel_foundry.sql.prepared import PreparedStatement

LOCK_RUN: Final = (
    sa.select(
        RUNS.c.name,
        RUNS.c.evaluation_count,
        RUNS.c.selected_count,
        RUNS.c.steering_count,
        RUNS.c.cost_usd,
        RUNS.c.best_sequence,
        RUNS.c.best_fitness,
        RUNS.c.best_speedup,
    )
    .where(RUNS.c.id == sa.bindparam("run"), is_there)
    .with_for_update()
)

_LOCK_RUN: Final = PreparedStatement(LOCK_RUN)

_OF_REQUEST: Final = RESULTS.where(
    EVALUATIONS.c.run_id == sa.bindparam("run"),
    EVALUATIONS.c.request_id == sa.bindparam("request"),
)

_DIGESTS: Final = ("digest_0", "digest_1", "digest_2", "digest_3")
"""Looked up at once: a candidate and its parents are two or three."""

# Not sorted here: a planner may then look for sequences, not for digests.
_OF_DIGESTS: Final = PreparedStatement(
    sa.select(EVALUATIONS.c.digest, EVALUATIONS.c.sequence, EVALUATIONS.c.fitness).where(
        EVALUATIONS.c.run_id == sa.bindparam("run"),
        EVALUATIONS.c.digest.in_([sa.bindparam(name) for name in _DIGESTS]),
    )
)

_TEXT_AT: Final = sa.select(TEXTS.c.candidate).where(
    TEXTS.c.run_id == sa.bindparam("run"), TEXTS.c.sequence == sa.bindparam("at")
)

_LATER = EVALUATIONS.alias("later")
_BEST: Final = (
    sa.select(EVALUATIONS.c.sequence, EVALUATIONS.c.fitness, EVALUATIONS.c.speedup)
    .where(
        EVALUATIONS.c.run_id == sa.bindparam("run"),
        EVALUATIONS.c.outcome == PASSED,
        ~sa.exists().where(
            _LATER.c.run_id == EVALUATIONS.c.run_id,
            _LATER.c.digest == EVALUATIONS.c.digest,
            _LATER.c.sequence > EVALUATIONS.c.sequence,
        ),
    )
    .order_by(EVALUATIONS.c.fitness.desc(), EVALUATIONS.c.sequence)
    .limit(1)
)

_UPDATE_RUN: Final = PreparedStatement(
    RUNS.update()
    .where(RUNS.c.id == sa.bindparam("run"))
    .values(
        evaluation_count=sa.bindparam("evaluation_count"),
        cost_usd=sa.bindparam("cost_usd"),
        best_sequence=sa.bindparam("best_sequence"),
        best_fitness=sa.bindparam("best_fitness"),
        best_speedup=sa.bindparam("best_speedup"),
    )
)

# Inline: their keys are known, so none is asked for.
_INSERT: Final = PreparedStatement(
    EVALUATIONS.insert().inline(), columns=EVALUATIONS.columns.keys()
)
_INSERT_TEXTS: Final = PreparedStatement(TEXTS.insert().inline(), columns=TEXTS.columns.keys())

LARGEST_EVALUATION: Final = 16 * 2**20
"""Characters of a candidate and its verdict as JSON, which is longer than their messages. A parent
and its inspirations are one answer, and a quarter of what any answer may have is left."""


class _Newest(NamedTuple):
    sequence: int
    fitness: float


def check_row(row: EvaluationRow) -> None:
    """Refuse a row that no store takes.

    Raises:
        InvalidArgumentError: the request_id is empty, too long or holds a NUL, or the texts are
            too long.
    """
    request_id = row.numbers["request_id"]
    if not 0 < len(request_id) <= REQUEST_ID_LENGTH or "\0" in request_id:
        raise InvalidArgumentError(
            f"request_id has {len(request_id)} characters, expected 1 to {REQUEST_ID_LENGTH} and "
            "none of them NUL",
            field="request_id",
        )
    size = len(row.candidate) + len(row.evaluation)
    if size > LARGEST_EVALUATION:
        raise InvalidArgumentError(
            f"a candidate and its verdict of {size} characters of JSON, expected at most "
            f"{LARGEST_EVALUATION}",
            field="evaluation",
        )


def insert_evaluation(
    connection: sa.Connection,
    run_id: int,
    row: EvaluationRow,
    candidate: Candidate,
    name: str = "",
) -> Result:
    """Insert an evaluation within a transaction.

    Args:
        connection: Of the transaction.
        run_id: The run.
        row: The evaluation; it was checked.
        candidate: Its candidate.
        name: What the run has to be called; "": anything.

    Returns:
        The result as stored.

    Raises:
        RunNotFoundError, AlreadyExistsError, InvalidArgumentError: as `Store.add`.
        IntegrityError: its request was stored before, see `find_request`.
    """
    locked = _LOCK_RUN.run(connection, {"run": run_id})
    if not locked:
        raise RunNotFoundError(f"no run number {run_id} in the store")
    (run,) = locked
    if name not in ("", run.name):
        raise RunNotFoundError(f"no run called {name!r}", run=name)
    numbers = row.numbers
    digest = numbers["digest"]
    newest = _newest(connection, run_id, (digest, *candidate.parents))
    previous = newest.get(digest)
    if previous is not None:
        _check_source(connection, run_id, previous.sequence, candidate)
    parents = [_parent(newest, parent) for parent in candidate.parents]
    # Added again, it is no new child of its parent.
    parent = parents[0] if parents and previous is None else None
    key = {"run_id": run_id, "sequence": run.evaluation_count + 1}
    columns = {
        **key,
        **numbers,
        "parent_sequence": parent.sequence if parent else None,
        "gain": numbers["fitness"] - parent.fitness if parent else None,
    }
    texts = {**key, "candidate": row.candidate, "evaluation": row.evaluation}
    _INSERT.run(connection, columns)
    _INSERT_TEXTS.run(connection, texts)
    _UPDATE_RUN.run(connection, _sums(connection, run, columns, previous))
    return result_of([columns[column.name] for column in RESULTS.selected_columns])


def find_request(connection: sa.Connection, run_id: int, numbers: dict[str, Any]) -> Result | None:
    """Return the evaluation that a request added before, or None.

    Raises:
        AlreadyExistsError: it added another candidate.
    """
    of_request = {"run": run_id, "request": numbers["request_id"]}
    earlier = connection.execute(_OF_REQUEST, of_request).first()
    if earlier is None:
        return None
    if earlier.digest != numbers["digest"]:
        request_id = numbers["request_id"]
        raise AlreadyExistsError(
            f"request {request_id} added another candidate to this run: choose a new "
            "request_id for each evaluation",
            request_id=request_id,
        )
    return result_of(earlier)


def _newest(connection: sa.Connection, run_id: int, digests: Sequence[str]) -> dict[str, _Newest]:
    """Return the newest evaluation of each of `digests` that has one."""
    found: dict[str, _Newest] = {}
    for start in range(0, len(digests), len(_DIGESTS)):
        asked = digests[start : start + len(_DIGESTS)]
        values = dict(zip_longest(_DIGESTS, asked, fillvalue=asked[0]))
        for digest, sequence, fitness in _OF_DIGESTS.run(connection, {"run": run_id, **values}):
            one = _Newest(sequence, fitness)
            found[digest] = max(found.get(digest, one), one)
    return found


def _parent(newest: Mapping[str, _Newest], digest: str) -> _Newest:
    if digest not in newest:
        raise InvalidArgumentError(
            f"parent {digest} is not in this run: add it first, or leave it out",
            field="candidate.parents",
            parent=digest,
        )
    return newest[digest]


def _check_source(
    connection: sa.Connection, run_id: int, sequence: int, candidate: Candidate
) -> None:
    """Refuse another source under a digest that is in the run already."""
    text = connection.execute(_TEXT_AT, {"run": run_id, "at": sequence}).scalar_one()
    if from_json(Candidate, text).source != candidate.source:
        raise AlreadyExistsError(
            f"candidate {candidate.digest} has another source under the same digest in this run",
            digest=candidate.digest,
        )


def _sums(
    connection: sa.Connection, run: Any, columns: dict[str, Any], previous: _Newest | None
) -> dict[str, Any]:
    """Return the run's row with this evaluation counted in, which is written already."""
    best = (run.best_sequence, run.best_fitness, run.best_speedup)
    is_better = run.best_fitness is None or columns["fitness"] > run.best_fitness
    if columns["outcome"] == PASSED and is_better:
        best = (columns["sequence"], columns["fitness"], columns["speedup"])
    elif previous is not None and previous.sequence == run.best_sequence:
        # The best one was measured again and is worth less: another may be best now.
        best = connection.execute(_BEST, {"run": columns["run_id"]}).first() or (None, None, None)
    return {
        "run": columns["run_id"],
        "evaluation_count": columns["sequence"],
        "cost_usd": run.cost_usd + columns["cost_usd"],
        "best_sequence": best[0],
        "best_fitness": best[1],
        "best_speedup": best[2],
    }
