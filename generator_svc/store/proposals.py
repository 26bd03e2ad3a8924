"""How each proposal was made, and what came of it."""

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from generator_svc.model_choice import ModelOutcome
from generator_svc.store.schema import PROPOSALS
from kernel_foundry.domain.account import MechanismCount, RepairCount
from kernel_foundry.domain.candidate import Operator
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.language import Language

_PASSED: Final = EvaluationOutcome.PASSED.value
_ONE: Final = sa.and_(
    PROPOSALS.c.run == sa.bindparam("of_run"), PROPOSALS.c.selection == sa.bindparam("of_selection")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalRow:
    """One proposal."""

    run: str
    selection: int
    language: Language
    operator: Operator
    expert: str
    model: str
    usd: float
    lessons: tuple[int, ...]
    """Ids of the lessons that its prompt showed."""
    sections: int | None
    """Id of the evolved sections in its prompt; None: the package's own."""
    parent: str
    """Digest of the first parent; empty for a seed."""
    parent_fitness: float | None
    parent_speedup: float | None
    parent_findings: tuple[FindingKind, ...]
    """Kinds that a repair was asked to mend; empty for other operators."""
    mechanisms: tuple[str, ...] = ()
    """Mechanisms that acted in its prompt, names of `kernel_foundry.domain.mechanisms`."""
    candidate: str = ""
    """Digest of what was proposed; empty where the reply held no candidate."""
    idea: str = ""
    """How the reply's reasoning begins."""
    outcome: str | None = None
    """None until it was judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sibling:
    """An earlier child of a parent, or an earlier seed."""

    idea: str
    """How its reply's reasoning began."""
    outcome: str | None
    """Value of the verdict's outcome; None: no verdict yet."""
    speedup: float | None
    """Over the fastest baseline; None: not timed."""
    remark: str
    """Its first error, or why it is suspect; empty when there is none."""


def forget(connection: sa.Connection, run: str) -> None:
    """Remove a run's proposals."""
    connection.execute(PROPOSALS.delete().where(PROPOSALS.c.run == run))


def is_known(connection: sa.Connection, run: str) -> bool:
    """Return whether there are proposals of a run."""
    found = sa.select(PROPOSALS.c.run).where(PROPOSALS.c.run == run).limit(1)
    return connection.execute(found).first() is not None


def rename(connection: sa.Connection, run: str, new_name: str) -> None:
    """Keep a run's proposals under another name."""
    connection.execute(PROPOSALS.update().where(PROPOSALS.c.run == run).values(run=new_name))


def add(connection: sa.Connection, row: ProposalRow) -> None:
    """Add a proposal; one made again for the same selection takes its place."""
    key = {"of_run": row.run, "of_selection": row.selection}
    connection.execute(PROPOSALS.delete().where(_ONE), key)
    values = {
        "run": row.run,
        "selection": row.selection,
        "language": row.language.value,
        "operator": row.operator.value,
        "expert": row.expert,
        "model": row.model,
        "usd": row.usd,
        "lessons": json.dumps(row.lessons),
        "sections": row.sections,
        "parent": row.parent,
        "parent_fitness": row.parent_fitness,
        "parent_speedup": row.parent_speedup,
        "parent_findings": json.dumps(row.parent_findings),
        "mechanisms": json.dumps(row.mechanisms),
        "candidate": row.candidate,
        "idea": row.idea,
    }
    connection.execute(PROPOSALS.insert(), values)


def find(connection: sa.Connection, run: str, selection: int) -> ProposalRow | None:
    """Return a proposal, or None when there is none."""
    key = {"of_run": run, "of_selection": selection}
    row = connection.execute(sa.select(PROPOSALS).where(_ONE), key).first()
    return None if row is None else _row(row)


def judge(
    connection: sa.Connection,
    run: str,
    selection: int,
    *,
    outcome: str,
    gain: float,
    speedup: float | None,
    remark: str,
    is_lesson: bool,
    judged_unix_s: float,
) -> bool:
    """Note what became of a proposal; return False when that was noted before.

    Args:
        connection: Of the transaction.
        run: Name of the run.
        selection: Number of the selection that the proposal answers.
        outcome: Value of the verdict's outcome.
        gain: Fitness won over the parent.
        speedup: Over the fastest baseline; None: not timed.
        remark: Its first error, or why it is suspect.
        is_lesson: Whether it taught a lesson.
        judged_unix_s: When.
    """
    noted = connection.execute(
        PROPOSALS.update()
        .where(_ONE, PROPOSALS.c.outcome.is_(None))
        .values(
            outcome=outcome,
            gain=gain,
            speedup=speedup,
            remark=remark,
            learnt=is_lesson,
            judged_unix_s=judged_unix_s,
        ),
        {"of_run": run, "of_selection": selection},
    )
    return bool(noted.rowcount)


def siblings(connection: sa.Connection, run: str, parent: str, limit: int) -> tuple[Sibling, ...]:
    """Return the newest candidates that a run has made of a parent, up to `limit`, oldest first.

    Args:
        connection: Of the transaction.
        run: Name of the run.
        parent: Digest of the first parent; empty: of none.
        limit: Most of them.
    """
    rows = connection.execute(
        sa.select(PROPOSALS.c.idea, PROPOSALS.c.outcome, PROPOSALS.c.speedup, PROPOSALS.c.remark)
        .where(PROPOSALS.c.run == run, PROPOSALS.c.parent == parent, PROPOSALS.c.candidate != "")
        .order_by(PROPOSALS.c.selection.desc())
        .limit(limit)
    ).all()
    return tuple(Sibling(**row._mapping) for row in reversed(rows))


def judged(connection: sa.Connection, limit: int) -> tuple[ModelOutcome, ...]:
    """Return the outcomes of the last judged proposals of all runs, oldest first."""
    rows = connection.execute(
        sa.select(PROPOSALS.c.run, PROPOSALS.c.model, PROPOSALS.c.gain, PROPOSALS.c.usd)
        .where(PROPOSALS.c.judged_unix_s.is_not(None))
        .order_by(PROPOSALS.c.judged_unix_s.desc())
        .limit(limit)
    ).all()
    return tuple(
        ModelOutcome(run=r.run, model=r.model, gain=r.gain, usd=r.usd) for r in reversed(rows)
    )


def repairs(connection: sa.Connection, run: str) -> tuple[RepairCount, ...]:
    """Return how judged repairs of a run ended for each kind of finding."""
    attempts: Counter[str] = Counter()
    successes: Counter[str] = Counter()
    rows = connection.execute(
        sa.select(PROPOSALS.c.parent_findings, PROPOSALS.c.outcome).where(
            PROPOSALS.c.run == run,
            PROPOSALS.c.operator == Operator.REPAIR.value,
            PROPOSALS.c.outcome.is_not(None),
        )
    )
    for row in rows:
        kinds = set(json.loads(row.parent_findings))
        attempts.update(kinds)
        successes.update(kinds if row.outcome == _PASSED else ())
    counts = [
        RepairCount(kind=FindingKind(kind), attempts=count, successes=successes[kind])
        for kind, count in attempts.items()
    ]
    return tuple(sorted(counts, key=lambda c: (-c.attempts, c.kind)))


def mechanism_counts(connection: sa.Connection, run: str) -> tuple[MechanismCount, ...]:
    """Return how many prompts of a run each operator made and each mechanism acted in, by name."""
    rows = connection.execute(
        sa.select(PROPOSALS.c.operator, PROPOSALS.c.mechanisms).where(PROPOSALS.c.run == run)
    ).all()
    counts = Counter(name for row in rows for name in (row.operator, *json.loads(row.mechanisms)))
    return tuple(MechanismCount(mechanism=name, prompts=counts[name]) for name in sorted(counts))


def lesson_counts(connection: sa.Connection, run: str) -> tuple[int, int]:
    """Return how often a run's prompts showed a lesson, and how many proposals taught one."""
    rows = connection.execute(
        sa.select(PROPOSALS.c.lessons, PROPOSALS.c.learnt).where(PROPOSALS.c.run == run)
    ).all()
    return sum(len(json.loads(r.lessons)) for r in rows), sum(r.learnt for r in rows)


def _row(row: Any) -> ProposalRow:
    return ProposalRow(
        run=row.run,
        selection=row.selection,
        language=Language(row.language),
        operator=Operator(row.operator),
        expert=row.expert,
        model=row.model,
        usd=row.usd,
        lessons=tuple(json.loads(row.lessons)),
        sections=row.sections,
        parent=row.parent,
        parent_fitness=row.parent_fitness,
        parent_speedup=row.parent_speedup,
        parent_findings=tuple(FindingKind(kind) for kind in json.loads(row.parent_findings)),
        mechanisms=tuple(json.loads(row.mechanisms)),
        candidate=row.candidate,
        idea=row.idea,
        outcome=row.outcome,
    )
