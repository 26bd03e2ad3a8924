"""Strategies compared on landscape files: many seeds, then statistics.

The same arguments give the same numbers, whatever the number of processes.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from kernel_foundry.domain.archive import STRATEGY_NAMES
from kernel_foundry.errors import InvalidArgumentError
from landscapes.landscape import Landscape
from landscapes.landscape_file import read_landscape
from landscapes.parallel_searches import Batch, search_all
from landscapes.search import REACHED_SHARE, SearchResult
from landscapes.search_space import SearchSpace
from landscapes.search_statistics import landscape_result, overall_differences
from landscapes.strategies import STRATEGIES
from landscapes.strategy_results import SearchComparison

MOST_EVALUATIONS: Final = 200
"""Default budget: what a real run might spend."""

_SEEDS_AT_ONCE: Final = 4
"""Seeds of a batch: few enough to show progress, worth a message between processes."""

Progress = Callable[[int, int], None]
"""Called with (searches done, searches in all)."""


def compare_strategies(
    files: Sequence[Path],
    *,
    strategies: Sequence[str],
    seed_count: int,
    evaluations: int | None,
    processes: int,
    first_seed: int = 0,
    on_progress: Progress = lambda _done, _total: None,
) -> SearchComparison:
    """Search with every strategy on every landscape under every seed.

    Args:
        files: Landscape files.
        strategies: Keys of `landscapes.strategies.STRATEGIES`; empty: those of real runs.
        seed_count: Searches of each strategy on each landscape.
        evaluations: Budget of a search; None: `default_evaluations` of each landscape.
        processes: Searches at once.
        first_seed: Seeds are numbered from here.
        on_progress: Told after every few searches.

    Raises:
        InvalidArgumentError: a file is no landscape, or a strategy is unknown or named twice.
        ProcessLostError: a process of the searches was killed.
    """
    names = tuple(strategies) or STRATEGY_NAMES
    _check(names, evaluations, seed_count)
    landscapes = [read_landscape(path) for path in files]
    budgets = [evaluations or default_evaluations(landscape) for landscape in landscapes]
    seeds = range(first_seed, first_seed + seed_count)
    batches = _batches(names, seeds, budgets)
    searches: dict[tuple[int, str, int], SearchResult] = {}
    total = len(landscapes) * len(names) * seed_count
    on_progress(0, total)
    for batch, found in search_all(batches, landscapes, processes):
        searches.update({(batch.landscape, *key): result for key, result in found.items()})
        on_progress(len(searches), total)
    results = tuple(
        landscape_result(
            SearchSpace(landscape),
            file=str(path),
            evaluations=budget,
            by_strategy={name: [searches[number, name, seed] for seed in seeds] for name in names},
            # Seeds of different landscapes have nothing in common but their numbers.
            resampling_seed=number,
        )
        for number, (path, landscape, budget) in enumerate(
            zip(files, landscapes, budgets, strict=True)
        )
    )
    return SearchComparison(
        target=REACHED_SHARE,
        seed_count=seed_count,
        first_seed=first_seed,
        landscapes=results,
        overall=overall_differences(results),
    )


def _batches(strategies: tuple[str, ...], seeds: range, budgets: Sequence[int]) -> list[Batch]:
    return [
        Batch(
            landscape=number,
            seeds=tuple(seeds[start : start + _SEEDS_AT_ONCE]),
            strategies=strategies,
            evaluations=budget,
        )
        for number, budget in enumerate(budgets)
        for start in range(0, len(seeds), _SEEDS_AT_ONCE)
    ]


def default_evaluations(landscape: Landscape) -> int:
    """Return half of the variants, at most `MOST_EVALUATIONS`: more would be no search."""
    return max(1, min(MOST_EVALUATIONS, len(landscape.variants) // 2))


def _check(strategies: tuple[str, ...], evaluations: int | None, seed_count: int) -> None:
    for name in strategies:
        if name not in STRATEGIES:
            raise InvalidArgumentError(
                f"no strategy {name!r}; there are {', '.join(STRATEGIES)}", field="strategies"
            )
    if len(set(strategies)) < len(strategies):
        raise InvalidArgumentError(
            f"a strategy is named twice in {', '.join(strategies)}", field="strategies"
        )
    if seed_count < 2:
        raise InvalidArgumentError(
            f"{seed_count} seeds give no interval; take at least 2, better 100", field="seeds"
        )
    if evaluations is not None and evaluations < 1:
        raise InvalidArgumentError(
            f"a budget of {evaluations} evaluations finds nothing; take at least 1",
            field="evaluations",
        )
