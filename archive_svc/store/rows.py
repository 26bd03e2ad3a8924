"""What goes into the store and comes out of it, beside the domain's own types."""

import re
import sys
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from archive_svc.store.schema import TEXTS, TOLD
from archive_svc.told import Cell, ToldNumbers
from kernel_foundry.domain.archive import RunBudget, RunSpec, RunState, ToldEvaluation
from kernel_foundry.domain.candidate import Candidate
from kernel_foundry.domain.evaluation import Evaluation, EvaluationOutcome
from kernel_foundry.domain.gradient import Transition
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
    told_count: int
    """Largest sequence told; sequences have no gaps."""
    selected_count: int
    """Selections reserved; the next one has this number."""
    cost_usd: float
    """Of everything told."""
    best_sequence: int | None
    """Newest telling of the candidate that is worth most for certain; None: none passed."""
    best_fitness: float | None
    best_speedup: float | None
    budget: RunBudget | None
    """Of the loop that worked on it last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """An evaluation to be told."""

    request_id: str
    """The same one tells once."""
    candidate: Candidate
    evaluation: Evaluation
    cost_usd: float = 0.0
    island: str = ""
    """Name of the island it belongs to; "" when that is not known."""
    selection: int | None = None
    """Number of the selection that it answers."""
    journal: str = ""
    """What was selected and dropped before it, see `archive_svc.journal`."""
    told_unix_s: float | None = None
    """When it was told; None: now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldOutcome:
    """What the store did with a telling."""

    numbers: ToldNumbers
    """As stored; its sequence is the run's newest unless `is_repeat`."""
    is_repeat: bool
    """True when the request had been told before: nothing was written."""


NUMBERS: Final = sa.select(
    TOLD.c.sequence,
    TOLD.c.digest,
    TOLD.c.operator,
    TOLD.c.parent,
    TOLD.c.outcome,
    TOLD.c.fitness,
    TOLD.c.memory,
    TOLD.c.algorithm,
    TOLD.c.synchronization,
    TOLD.c.speedup,
    TOLD.c.has_parameters,
    TOLD.c.island,
    TOLD.c.selection,
)
"""Columns of `told_numbers`, in its order."""

WHOLE: Final = sa.select(
    TOLD.c.sequence,
    TOLD.c.request_id,
    TOLD.c.told_unix_s,
    TOLD.c.cost_usd,
    TOLD.c.island,
    TOLD.c.selection,
    TOLD.c.journal,
    TEXTS.c.candidate,
    TEXTS.c.evaluation,
).join_from(TOLD, TEXTS)
"""A telling with its texts; what it makes of the run's search can be computed from it."""

_PARENT = TOLD.alias("parent")
TRANSITIONS: Final = sa.select(
    TOLD.c.sequence,
    TOLD.c.island,
    TOLD.c.parent,
    TOLD.c.digest,
    _PARENT.c.memory.label("parent_memory"),
    _PARENT.c.algorithm.label("parent_algorithm"),
    _PARENT.c.synchronization.label("parent_synchronization"),
    TOLD.c.memory,
    TOLD.c.algorithm,
    TOLD.c.synchronization,
    TOLD.c.gain,
    TOLD.c.outcome,
).join_from(
    TOLD,
    _PARENT,
    sa.and_(_PARENT.c.run_id == TOLD.c.run_id, _PARENT.c.sequence == TOLD.c.parent_sequence),
)
"""Columns of `transition`, in its order; one row for each child with a parent."""


def told_numbers(row: Any) -> ToldNumbers:
    """Return the numbers in a row of `NUMBERS`; equal strings are one object."""
    (
        sequence, digest, operator, parent, outcome, fitness,
        memory, algorithm, synchronization, speedup, has_parameters, island, selection,
    ) = row  # fmt: skip
    return ToldNumbers(
        sequence=sequence,
        digest=sys.intern(digest),
        operator=sys.intern(operator),
        parent=sys.intern(parent),
        outcome=sys.intern(outcome),
        passed=outcome == PASSED,
        fitness=fitness,
        cell=_cell(memory, algorithm, synchronization),
        speedup=speedup,
        has_parameters=bool(has_parameters),
        island=sys.intern(island),
        selection=selection,
    )


def told_evaluation(row: Any) -> ToldEvaluation:
    """Return the told evaluation in a row of `WHOLE`."""
    return ToldEvaluation(
        sequence=row.sequence,
        candidate=from_json(Candidate, row.candidate),
        evaluation=from_json(Evaluation, row.evaluation),
        told_unix_s=row.told_unix_s,
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


def number_values(telling: Telling, told_unix_s: float) -> dict[str, Any]:
    """Return the columns of `TOLD` that do not depend on what was told before."""
    candidate, evaluation = telling.candidate, telling.evaluation
    measures = evaluation.measures
    return {
        "request_id": telling.request_id,
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
        "has_parameters": _HAS_TUNE.search(candidate.source.plan) is not None,
        "island": telling.island,
        "selection": telling.selection,
        "cost_usd": telling.cost_usd,
        "told_unix_s": told_unix_s,
        "journal": telling.journal,
    }


def text_values(telling: Telling) -> dict[str, Any]:
    """Return the texts of `TEXTS`."""
    return {
        "candidate": to_json(telling.candidate),
        "evaluation": to_json(telling.evaluation),
    }


def _cell(memory: int | None, algorithm: int | None, synchronization: int | None) -> Cell | None:
    if memory is None or algorithm is None or synchronization is None:
        return None
    return (memory, algorithm, synchronization)
