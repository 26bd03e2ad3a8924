"""The rows of the store, and conversions between them and the domain's types."""

import re
import sys
import time
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import sqlalchemy as sa

from archive_svc.grids.result import Result
from archive_svc.store.schema import EVALUATIONS, TEXTS
from kernel_foundry.domain.archive import ArchivedEvaluation, RunBudget, RunSpec, RunState
from kernel_foundry.domain.candidate import Candidate
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.gradient import Transition
from kernel_foundry.domain.measures import Cell
from kernel_foundry.domain.plain import from_json, to_json

PASSED: Final = EvaluationOutcome.PASSED.value

_HAS_TUNE = re.compile(r"^TUNE\s*[:=]", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run's own row."""

    id: int
    spec: RunSpec
    state: RunState
    created_unix_s: float
    evaluation_count: int
    """The largest sequence; sequences have no gaps."""
    selected_count: int
    """Selections reserved; the next one has this number."""
    cost_usd: float
    """Sum over all evaluations."""
    best_sequence: int | None
    """Newest evaluation of the run's best candidate; None if nothing passed."""
    best_fitness: float | None
    best_speedup: float | None
    budget: RunBudget | None
    """Budget of the loop that worked on it last."""
    steering_count: int
    """The largest sequence of its steering events."""
    owner: str = ""
    """The user who made it; "" for nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEvaluation:
    """An evaluation to be stored."""

    request_id: str
    """An evaluation with the id of an earlier one is not added again."""
    candidate: Candidate
    evaluation: Evaluation
    cost_usd: float = 0.0
    island: str = ""
    """Name of the island that it belongs to; "" if that is not known."""
    selection: int | None = None
    """Number of the selection that it answers."""
    journal: str = ""
    """Selections made and dropped before it, see `archive_svc.run.journal`; "": not known."""
    archived_unix_s: float | None = None
    """When it was added; None: now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationRow:
    """An evaluation as its columns."""

    numbers: dict[str, Any]
    """As of `numbers_of`."""
    candidate: str
    """JSON text."""
    evaluation: str
    """JSON text."""


RESULTS: Final = sa.select(
    EVALUATIONS.c.sequence,
    EVALUATIONS.c.digest,
    EVALUATIONS.c.operator,
    EVALUATIONS.c.parent,
    EVALUATIONS.c.outcome,
    EVALUATIONS.c.fitness,
    EVALUATIONS.c.memory,
    EVALUATIONS.c.algorithm,
    EVALUATIONS.c.synchronization,
    EVALUATIONS.c.features,
    EVALUATIONS.c.has_parameters,
    EVALUATIONS.c.island,
    EVALUATIONS.c.selection,
)
"""Columns of `result_of`, in its order."""

WHOLE: Final = sa.select(
    EVALUATIONS.c.sequence,
    EVALUATIONS.c.request_id,
    EVALUATIONS.c.archived_unix_s,
    EVALUATIONS.c.cost_usd,
    EVALUATIONS.c.island,
    EVALUATIONS.c.selection,
    EVALUATIONS.c.journal,
    TEXTS.c.candidate,
    TEXTS.c.evaluation,
).join_from(EVALUATIONS, TEXTS)
"""An evaluation with its texts; all its other columns can be computed from these."""

_PARENT = EVALUATIONS.alias("parent")
TRANSITIONS: Final = sa.select(
    EVALUATIONS.c.sequence,
    EVALUATIONS.c.island,
    EVALUATIONS.c.parent,
    EVALUATIONS.c.digest,
    _PARENT.c.memory.label("parent_memory"),
    _PARENT.c.algorithm.label("parent_algorithm"),
    _PARENT.c.synchronization.label("parent_synchronization"),
    EVALUATIONS.c.memory,
    EVALUATIONS.c.algorithm,
    EVALUATIONS.c.synchronization,
    EVALUATIONS.c.gain,
    EVALUATIONS.c.outcome,
).join_from(
    EVALUATIONS,
    _PARENT,
    sa.and_(
        _PARENT.c.run_id == EVALUATIONS.c.run_id,
        _PARENT.c.sequence == EVALUATIONS.c.parent_sequence,
    ),
)
"""Columns of `transition`, in its order; one row for each child with a parent."""


def evaluation_row(new: NewEvaluation) -> EvaluationRow:
    """Return the columns of an evaluation to be stored."""
    return EvaluationRow(
        numbers=numbers_of(new),
        candidate=to_json(new.candidate),
        evaluation=to_json(new.evaluation),
    )


def numbers_of(new: NewEvaluation) -> dict[str, Any]:
    """Return the columns of `EVALUATIONS` that do not depend on earlier evaluations."""
    candidate, evaluation = new.candidate, new.evaluation
    measures, launches = evaluation.measures, evaluation.launches
    return {
        "request_id": new.request_id,
        "digest": candidate.digest,
        "operator": candidate.operator.value,
        "parent": candidate.parents[0] if candidate.parents else "",
        "outcome": evaluation.outcome.value,
        "fitness": evaluation.fitness,
        "memory": measures.memory if measures else None,
        "algorithm": measures.algorithm if measures else None,
        "synchronization": measures.synchronization if measures else None,
        "features": " ".join(f"{f:.0f}" for f in launches.features) if launches else "",
        "speedup": evaluation.speedup,
        "has_parameters": _HAS_TUNE.search(candidate.source.plan) is not None,
        "island": new.island,
        "selection": new.selection,
        "cost_usd": new.cost_usd,
        "archived_unix_s": time.time() if new.archived_unix_s is None else new.archived_unix_s,
        "journal": new.journal,
    }


def result_of(row: Any) -> Result:
    """Return the result in a row of `RESULTS`; equal strings are one object."""
    (
        sequence, digest, operator, parent, outcome, fitness,
        memory, algorithm, synchronization, features, has_parameters, island, selection,
    ) = row  # fmt: skip
    return Result(
        sequence=sequence,
        digest=sys.intern(digest),
        operator=sys.intern(operator),
        parent=sys.intern(parent),
        outcome=sys.intern(outcome),
        fitness=fitness,
        cell=_cell(memory, algorithm, synchronization),
        features=_features(features),
        has_parameters=bool(has_parameters),
        island=sys.intern(island),
        selection=selection,
    )


def archived_evaluation(row: Any) -> ArchivedEvaluation:
    """Return the evaluation in a row of `WHOLE`."""
    return ArchivedEvaluation(
        sequence=row.sequence,
        candidate=from_json(Candidate, row.candidate),
        evaluation=from_json(Evaluation, row.evaluation),
        archived_unix_s=row.archived_unix_s,
        cost_usd=row.cost_usd,
        island=row.island,
        selection=row.selection,
        journal=row.journal,
    )


def transition(row: Any) -> Transition:
    """Return the transition in a row of `TRANSITIONS`."""
    sequence, island, parent, child, *levels, gain, outcome = row
    return Transition(
        sequence=sequence,
        island=island,
        parent=parent,
        child=child,
        parent_cell=_cell(*levels[:3]),
        child_cell=_cell(*levels[3:]),
        gain=gain,
        outcome=outcome,
    )


@lru_cache(maxsize=1024)
def _features(text: str) -> tuple[float, ...]:
    """Return the numbers in a text; equal ones are one object, as runs have few of them."""
    return tuple(map(float, text.split()))


def _cell(memory: int | None, algorithm: int | None, synchronization: int | None) -> Cell | None:
    if memory is None or algorithm is None or synchronization is None:
        return None
    return (memory, algorithm, synchronization)
