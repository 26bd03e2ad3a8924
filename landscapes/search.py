"""One search: a strategy on a landscape under one seed.

The archive is the one that real runs use; only the generator and the evaluator answer from the
landscape. Statistics over searches: `search_statistics.py`.
"""

from dataclasses import dataclass
from typing import Final

from archive_svc.grids.grid import CELL_COUNT
from archive_svc.grids.result import Result
from archive_svc.search.run_archive import RunArchive
from archive_svc.search.selection import Choice
from kernel_foundry.domain.measures import Cell
from landscapes.search_space import (
    LandscapeEvaluator,
    LandscapeGenerator,
    LandscapeVerdict,
    SearchSpace,
)
from landscapes.strategies import STRATEGIES

REACHED_SHARE: Final = 0.95
"""A variant at this share of the best variant's speed counts as found."""

REPEATS_BEFORE_EXHAUSTED: Final = 40
"""Proposals in a row that were judged before end a search, as they end a real run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """What one search came to; every speed is a share of the best variant's true speed."""

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


def search(
    space: SearchSpace, evaluator: LandscapeEvaluator, *, strategy: str, seed: int, evaluations: int
) -> SearchResult:
    """Search `space` until `evaluations` variants, or all of them, were judged.

    Args:
        space: The landscape.
        evaluator: Of the same space and seed; strategies may share it.
        strategy: Key of `landscapes.strategies.STRATEGIES`.
        seed: Of every random choice.
        evaluations: Budget; a proposal that was judged before costs nothing.
    """
    archive = RunArchive(strategy=strategy, seed=seed, strategies=STRATEGIES)
    generator = LandscapeGenerator(space, seed)
    seen: set[int] = set()
    speeds: list[float] = []
    number = repeats = 0
    while len(speeds) < min(evaluations, len(space)) and repeats < REPEATS_BEFORE_EXHAUSTED:
        choice = archive.select(number)
        position = generator.propose(choice, number)
        if position in seen:
            repeats += 1
            archive.drop(number)
        else:
            repeats = 0
            seen.add(position)
            verdict = evaluator.evaluate(position)
            archive.take_in(_result(archive, choice, number, position, verdict, sequence=len(seen)))
            speed = space.best_ns / float(space.true_ns[position])
            speeds.append(max(speed, speeds[-1] if speeds else 0.0))
        number += 1
    worths = _worths(space, seen)
    return SearchResult(
        speeds=tuple(speeds),
        reached_after=next((n for n, s in enumerate(speeds, 1) if s >= REACHED_SHARE), None),
        coverage=len(worths) / CELL_COUNT,
        qd_score=sum(worths.values()),
        is_exhausted=repeats >= REPEATS_BEFORE_EXHAUSTED,
    )


def _result(
    archive: RunArchive,
    choice: Choice,
    number: int,
    position: int,
    verdict: LandscapeVerdict,
    *,
    sequence: int,
) -> Result:
    digest, parent = str(position), choice.parent or ""
    launches = verdict.variant.launches
    return Result(
        sequence=sequence,
        digest=digest,
        operator=choice.operator.value,
        parent=parent,
        outcome=verdict.variant.outcome.value,
        fitness=verdict.fitness,
        cell=verdict.cell,
        features=launches.features if launches else (),
        # A variant is one configuration: its parameters are what the search changes.
        has_parameters=True,
        island=archive.island_for(selection=number, parent=parent, digest=digest),
        selection=number,
    )


def _worths(space: SearchSpace, seen: set[int]) -> dict[Cell, float]:
    """Return the true fitness of the best variant found in each cell."""
    worths: dict[Cell, float] = {}
    for position in sorted(seen):
        cell = space.cells[position]
        if cell is not None and space.landscape.variants[position].passed:
            worths[cell] = max(worths.get(cell, 0.0), space.true_fitness(position))
    return worths
