"""One replayed run: a strategy searches a landscape under one seed.

The archive is the one that real runs use; only the generator and the evaluator are replayed.
Knows nothing of statistics over runs.
"""

from dataclasses import dataclass
from typing import Final

from archive_svc.grid import CELL_COUNT
from archive_svc.replay.world import Judged, ReplayedEvaluator, ReplayedGenerator, World
from archive_svc.run_archive import RunArchive
from archive_svc.selection import SelectionPlan
from archive_svc.told import Cell, ToldNumbers

REACHED_SHARE: Final = 0.95
"""A variant at this share of the best variant's speed counts as found."""

REPEATS_BEFORE_EXHAUSTED: Final = 40
"""Proposals in a row that were judged before end a run, as they end the real loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedRun:
    """What one run came to; every speed is a share of the best variant's true speed."""

    speeds: tuple[float, ...]
    """Best true speed found after each evaluation; 0 before anything passed."""
    reached_after: int | None
    """Evaluations until a variant of `REACHED_SHARE` was judged; None: never."""
    coverage: float
    """Share of the grid's cells for which a correct variant was found."""
    qd_score: float
    """Sum over these cells of the true fitness of the best variant found."""
    is_exhausted: bool
    """Whether proposals that were judged before ended it."""


def replay_run(
    world: World, evaluator: ReplayedEvaluator, *, strategy: str, seed: int, evaluations: int
) -> ReplayedRun:
    """Search `world` until `evaluations` variants, or all of them, were judged.

    Args:
        world: The landscape.
        evaluator: Of the same world and seed; strategies may share it.
        strategy: Key of `archive_svc.strategies.STRATEGIES`.
        seed: Of every random choice.
        evaluations: Budget; a proposal that was judged before costs nothing.
    """
    archive = RunArchive(strategy=strategy, seed=seed)
    generator = ReplayedGenerator(world, seed)
    seen: set[int] = set()
    speeds: list[float] = []
    number = repeats = 0
    while len(speeds) < min(evaluations, len(world)) and repeats < REPEATS_BEFORE_EXHAUSTED:
        plan = archive.select(number)
        position = generator.propose(plan, number)
        if position in seen:
            repeats += 1
            archive.drop(number)
        else:
            repeats = 0
            seen.add(position)
            judged = evaluator.evaluate(position)
            archive.take(_told(archive, plan, number, position, judged, sequence=len(seen)))
            speed = world.best_ns / float(world.true_ns[position])
            speeds.append(max(speed, speeds[-1] if speeds else 0.0))
        number += 1
    worths = _worths(world, seen)
    return ReplayedRun(
        speeds=tuple(speeds),
        reached_after=next((n for n, s in enumerate(speeds, 1) if s >= REACHED_SHARE), None),
        coverage=len(worths) / CELL_COUNT,
        qd_score=sum(worths.values()),
        is_exhausted=repeats >= REPEATS_BEFORE_EXHAUSTED,
    )


def _told(
    archive: RunArchive,
    plan: SelectionPlan,
    number: int,
    position: int,
    judged: Judged,
    *,
    sequence: int,
) -> ToldNumbers:
    digest, parent = str(position), plan.parent or ""
    return ToldNumbers(
        sequence=sequence,
        digest=digest,
        operator=plan.operator.value,
        parent=parent,
        outcome=judged.variant.outcome.value,
        passed=judged.variant.passed,
        fitness=judged.fitness,
        cell=judged.cell,
        speedup=judged.speedup,
        # A variant is one configuration: its parameters are what the search changes.
        has_parameters=True,
        island=archive.island_for(selection=number, parent=parent, digest=digest),
        selection=number,
    )


def _worths(world: World, seen: set[int]) -> dict[Cell, float]:
    """Return the true fitness of the best variant found in each cell."""
    worths: dict[Cell, float] = {}
    for position in sorted(seen):
        cell = world.cells[position]
        if cell is not None and world.landscape.variants[position].passed:
            worths[cell] = max(worths.get(cell, 0.0), world.true_fitness(position))
    return worths
