"""Strategies compared on landscapes: many seeds in parallel processes, then statistics.

The same arguments give the same numbers, whatever the number of processes.
"""

import multiprocessing
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from archive_svc.replay.bootstrap import Bootstrap, estimate, share
from archive_svc.replay.landscape import Landscape
from archive_svc.replay.landscape_file import read_landscape
from archive_svc.replay.replay_run import REACHED_SHARE, ReplayedRun, replay_run
from archive_svc.replay.world import ReplayedEvaluator, World
from archive_svc.strategies import DEFAULT_STRATEGY, STRATEGIES
from kernel_foundry.domain.search_comparison import (
    Curve,
    LandscapeResult,
    OverallDifference,
    SearchComparison,
    StrategyDifference,
    StrategyResult,
)
from kernel_foundry.errors import InvalidArgumentError

MOST_EVALUATIONS: Final = 200
"""Default budget: what a real run might spend."""

_SEEDS_AT_ONCE: Final = 5
"""Seeds of a work item: small enough to show progress, large enough to be worth a message."""

Progress = Callable[[int, int], None]
"""Called with (searches done, searches in all)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Searches:
    """A work item: some seeds of every strategy on one landscape."""

    landscape: int
    seeds: tuple[int, ...]
    strategies: tuple[str, ...]
    evaluations: int


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
    """Replay every strategy on every landscape under every seed.

    Args:
        files: Landscape files.
        strategies: Keys of `archive_svc.strategies.STRATEGIES`.
        seed_count: Runs of each strategy on each landscape.
        evaluations: Budget of a run; None: `default_evaluations` of each landscape.
        processes: Searches at once.
        first_seed: Seeds are numbered from here.
        on_progress: Told after every few searches.

    Raises:
        InvalidArgumentError: a file is no landscape, or a strategy is unknown or named twice.
    """
    _check(strategies, evaluations, seed_count)
    landscapes = [read_landscape(path) for path in files]
    budgets = [evaluations or default_evaluations(landscape) for landscape in landscapes]
    seeds = range(first_seed, first_seed + seed_count)
    items = [
        Searches(
            landscape=number,
            seeds=tuple(seeds[start : start + _SEEDS_AT_ONCE]),
            strategies=tuple(strategies),
            evaluations=budget,
        )
        for number, budget in enumerate(budgets)
        for start in range(0, seed_count, _SEEDS_AT_ONCE)
    ]
    runs: dict[tuple[int, str, int], ReplayedRun] = {}
    total = len(landscapes) * len(strategies) * seed_count
    on_progress(0, total)
    for item, found in _replayed(items, landscapes, processes):
        runs.update({(item.landscape, *key): run for key, run in found.items()})
        on_progress(len(runs), total)
    bootstrap = Bootstrap(seed_count)
    by_landscape = [
        {s: [runs[number, s, seed] for seed in seeds] for s in strategies}
        for number in range(len(landscapes))
    ]
    results = tuple(
        _landscape_result(path, World(landscape), budget, by_strategy, bootstrap)
        for path, landscape, budget, by_strategy in zip(
            files, landscapes, budgets, by_landscape, strict=True
        )
    )
    return SearchComparison(
        target=REACHED_SHARE,
        seed_count=seed_count,
        first_seed=first_seed,
        landscapes=results,
        overall=_overall(results, budgets, by_landscape, seed_count),
    )


def default_evaluations(landscape: Landscape) -> int:
    """Return half of the variants, at most `MOST_EVALUATIONS`: more would be no search."""
    return max(1, min(MOST_EVALUATIONS, len(landscape.variants) // 2))


def _check(strategies: Sequence[str], evaluations: int | None, seed_count: int) -> None:
    for name in strategies:
        if name not in STRATEGIES:
            raise InvalidArgumentError(
                f"no strategy {name!r}; there are {', '.join(STRATEGIES)}", field="strategies"
            )
    if not strategies or len(set(strategies)) < len(strategies):
        raise InvalidArgumentError(
            f"strategies are {', '.join(strategies) or 'none'}; name each one once",
            field="strategies",
        )
    if seed_count < 2 or (evaluations is not None and evaluations < 1):
        raise InvalidArgumentError(
            f"{seed_count} seeds of {evaluations} evaluations: at least 2 seeds are needed for an "
            "interval, and 1 evaluation",
            field="seeds",
        )


_Runs = dict[tuple[str, int], ReplayedRun]


def _replayed(
    items: Sequence[Searches], landscapes: Sequence[Landscape], processes: int
) -> Iterator[tuple[Searches, _Runs]]:
    """Yield every item with its runs by (strategy, seed), as they are done."""
    if processes == 1:
        worlds = [World(landscape) for landscape in landscapes]
        for item in items:
            yield item, _search(item, worlds[item.landscape])
        return
    # A fresh interpreter: threads of the caller and forks do not go together.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        min(processes, len(items)), context, initializer=_prepare, initargs=(tuple(landscapes),)
    ) as pool:
        futures = {pool.submit(_search_prepared, item): item for item in items}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            pool.shutdown(cancel_futures=True)


_worlds: list[World] = []
"""Of a worker process: made once, not sent with every item."""


def _prepare(landscapes: tuple[Landscape, ...]) -> None:
    _worlds[:] = [World(landscape) for landscape in landscapes]


def _search_prepared(item: Searches) -> _Runs:
    return _search(item, _worlds[item.landscape])


def _search(item: Searches, world: World) -> _Runs:
    runs = {}
    for seed in item.seeds:
        evaluator = ReplayedEvaluator(world, seed)
        for strategy in item.strategies:
            runs[strategy, seed] = replay_run(
                world, evaluator, strategy=strategy, seed=seed, evaluations=item.evaluations
            )
    return runs


def _landscape_result(
    path: Path,
    world: World,
    evaluations: int,
    by_strategy: Mapping[str, Sequence[ReplayedRun]],
    bootstrap: Bootstrap,
) -> LandscapeResult:
    landscape = world.landscape
    subject = _subject(tuple(by_strategy))
    cells = {c for c, v in zip(world.cells, landscape.variants, strict=True) if v.passed}
    return LandscapeResult(
        name=landscape.name,
        file=str(path),
        task=landscape.task,
        language=landscape.language,
        device=landscape.device,
        variant_count=len(world),
        correct_count=int(np.isfinite(world.true_ns).sum()),
        target_count=int((world.best_ns / world.true_ns >= REACHED_SHARE).sum()),
        cell_count=len(cells),
        best_ns=world.best_ns,
        baseline_ns=world.baseline_ns,
        evaluations=evaluations,
        strategies=tuple(
            _strategy_result(name, runs, evaluations, bootstrap)
            for name, runs in by_strategy.items()
        ),
        differences=tuple(
            _difference(subject, name, by_strategy, evaluations, bootstrap)
            for name in by_strategy
            if name != subject
        ),
    )


def _strategy_result(
    name: str, runs: Sequence[ReplayedRun], evaluations: int, bootstrap: Bootstrap
) -> StrategyResult:
    speeds = _speeds(runs, evaluations)
    mean, low, high = bootstrap.mean_curve(speeds)
    needed = _needed(runs, evaluations)
    return StrategyResult(
        strategy=name,
        curve=Curve(mean=_floats(mean), low=_floats(low), high=_floats(high)),
        evaluations_mean=bootstrap.mean(needed),
        evaluations_median=bootstrap.median(needed),
        reached_after=tuple(r.reached_after for r in runs),
        reached_share=share(sum(r.reached_after is not None for r in runs), len(runs)),
        exhausted_count=sum(r.is_exhausted for r in runs),
        final_speed=bootstrap.mean(speeds[:, -1]),
        mean_speed=bootstrap.mean(speeds.mean(axis=1)),
        coverage=bootstrap.mean(np.array([r.coverage for r in runs])),
        qd_score=bootstrap.mean(np.array([r.qd_score for r in runs])),
    )


def _difference(
    subject: str,
    other: str,
    by_strategy: Mapping[str, Sequence[ReplayedRun]],
    evaluations: int,
    bootstrap: Bootstrap,
) -> StrategyDifference:
    first, second = by_strategy[subject], by_strategy[other]
    needed = bootstrap.mean(_needed(first, evaluations) - _needed(second, evaluations))
    mean_speeds = [_speeds(runs, evaluations).mean(axis=1) for runs in (first, second)]
    speed = bootstrap.mean(mean_speeds[0] - mean_speeds[1])
    return StrategyDifference(
        strategy=subject,
        other=other,
        evaluations=needed,
        evaluations_excludes_zero=needed.excludes_zero,
        mean_speed=speed,
        mean_speed_excludes_zero=speed.excludes_zero,
    )


def _overall(
    results: Sequence[LandscapeResult],
    budgets: Sequence[int],
    by_landscape: Sequence[Mapping[str, Sequence[ReplayedRun]]],
    seed_count: int,
) -> tuple[OverallDifference, ...]:
    """Return the differences over all landscapes; seeds are resampled within each landscape."""
    names = tuple(by_landscape[0])
    subject = _subject(names)
    overall = []
    for other in (n for n in names if n != subject):
        logs, resampled = [], []
        for number, (budget, by_strategy) in enumerate(zip(budgets, by_landscape, strict=True)):
            # Seeds of different landscapes have nothing in common: each has its own resamples.
            bootstrap = Bootstrap(seed_count, seed=number)
            needed = [_needed(by_strategy[name], budget) for name in (subject, other)]
            logs.append(np.log(needed[0].mean()) - np.log(needed[1].mean()))
            means = [np.log(bootstrap.resampled_means(n)) for n in needed]
            resampled.append(means[0] - means[1])
        differences = [d for r in results for d in r.differences if d.other == other]
        overall.append(
            OverallDifference(
                strategy=subject,
                other=other,
                evaluations_ratio=estimate(
                    float(np.exp(np.mean(logs))), np.exp(np.mean(resampled, axis=0))
                ),
                fewer_count=sum(d.evaluations.high < 0 for d in differences),
                more_count=sum(d.evaluations.low > 0 for d in differences),
            )
        )
    return tuple(overall)


def _subject(strategies: tuple[str, ...]) -> str:
    """Return the strategy that the others are compared with."""
    return DEFAULT_STRATEGY if DEFAULT_STRATEGY in strategies else strategies[0]


def _needed(runs: Sequence[ReplayedRun], evaluations: int) -> np.ndarray:
    """Return `(seed,)` evaluations to reach the target; the budget + 1 where it was not."""
    return np.array([float(r.reached_after or evaluations + 1) for r in runs])


def _speeds(runs: Sequence[ReplayedRun], evaluations: int) -> np.ndarray:
    """Return `(seed, evaluation)` best speeds; a run that ended early keeps what it had."""
    return np.array([[*r.speeds, *[r.speeds[-1]] * (evaluations - len(r.speeds))] for r in runs])


def _floats(values: np.ndarray) -> tuple[float, ...]:
    return tuple(values.tolist())
