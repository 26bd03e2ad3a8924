"""Statistics of searches: per strategy, and paired differences between strategies.

A search that did not reach the target counts as its budget + 1 evaluations. The mean of that is a
restricted mean (Source: Royston and Parmar 2013): a lower bound of the true one, under the same
bound for every strategy.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from kernel_foundry.domain.archive import DEFAULT_STRATEGY
from kernel_foundry.sdk.statistics.bootstrap import Bootstrap, estimate, share
from landscapes.search import REACHED_SHARE, SearchResult
from landscapes.search_space import SearchSpace
from landscapes.strategy_results import (
    Curve,
    LandscapeResult,
    OverallDifference,
    StrategyDifference,
    StrategyResult,
)

_SUBJECT: Final = DEFAULT_STRATEGY
"""The strategy that the others are compared with, where it is among them: they have to beat it."""

SearchesByStrategy = Mapping[str, Sequence[SearchResult]]
"""Searches of each strategy in the order of their seeds, which are the same for all."""


def landscape_result(
    space: SearchSpace,
    *,
    file: str,
    evaluations: int,
    by_strategy: SearchesByStrategy,
    resampling_seed: int,
) -> LandscapeResult:
    """Return what the searches on one landscape came to.

    Args:
        space: The landscape.
        file: Where it was read from.
        evaluations: Budget of each search.
        by_strategy: The searches.
        resampling_seed: Of the bootstrap.
    """
    landscape = space.landscape
    subject = _subject(tuple(by_strategy))
    bootstrap = Bootstrap(len(by_strategy[subject]), seed=resampling_seed)
    shares = space.best_ns / space.true_ns
    target_count = int((shares >= REACHED_SHARE).sum())
    cells = {c for c, v in zip(space.cells, landscape.variants, strict=True) if v.passed}
    return LandscapeResult(
        name=landscape.name,
        file=file,
        task=landscape.task,
        language=landscape.language,
        device=landscape.device,
        variant_count=len(space),
        correct_count=int((shares > 0).sum()),
        target_count=target_count,
        cell_count=len(cells),
        # Position of the first of m among n in random order (Source: the negative
        # hypergeometric distribution's mean).
        drawing_evaluations=(len(space) + 1) / (target_count + 1),
        best_ns=space.best_ns,
        baseline_ns=space.baseline_ns,
        evaluations=evaluations,
        strategies=tuple(
            _strategy_result(name, searches, evaluations, bootstrap)
            for name, searches in by_strategy.items()
        ),
        differences=tuple(
            _difference(subject, other, by_strategy, evaluations, bootstrap)
            for other in by_strategy
            if other != subject
        ),
    )


def overall_differences(results: Sequence[LandscapeResult]) -> tuple[OverallDifference, ...]:
    """Return how the compared strategy does over all landscapes, each of the same weight."""
    names = tuple(s.strategy for s in results[0].strategies)
    subject = _subject(names)
    return tuple(_overall(subject, other, results) for other in names if other != subject)


def _strategy_result(
    name: str, searches: Sequence[SearchResult], evaluations: int, bootstrap: Bootstrap
) -> StrategyResult:
    speeds = _speeds(searches, evaluations)
    mean, low, high = bootstrap.mean_curve(speeds)
    reached_after = tuple(r.reached_after for r in searches)
    needed = _needed(reached_after, evaluations)
    return StrategyResult(
        strategy=name,
        curve=Curve(mean=tuple(mean.tolist()), low=tuple(low.tolist()), high=tuple(high.tolist())),
        evaluations_mean=bootstrap.mean(needed),
        evaluations_median=bootstrap.median(needed),
        reached_after=reached_after,
        reached_share=share(sum(n is not None for n in reached_after), len(searches)),
        exhausted_count=sum(r.is_exhausted for r in searches),
        final_speed=bootstrap.mean(speeds[:, -1]),
        mean_speed=bootstrap.mean(speeds.mean(axis=1)),
        coverage=bootstrap.mean(np.array([r.coverage for r in searches])),
        qd_score=bootstrap.mean(np.array([r.qd_score for r in searches])),
    )


def _difference(
    subject: str,
    other: str,
    by_strategy: SearchesByStrategy,
    evaluations: int,
    bootstrap: Bootstrap,
) -> StrategyDifference:
    pair = by_strategy[subject], by_strategy[other]
    needed = [_needed([r.reached_after for r in searches], evaluations) for searches in pair]
    speeds = [_speeds(searches, evaluations).mean(axis=1) for searches in pair]
    fewer = bootstrap.mean(needed[0] - needed[1])
    faster = bootstrap.mean(speeds[0] - speeds[1])
    return StrategyDifference(
        strategy=subject,
        other=other,
        evaluations=fewer,
        evaluations_excludes_zero=fewer.excludes_zero,
        mean_speed=faster,
        mean_speed_excludes_zero=faster.excludes_zero,
    )


def _overall(subject: str, other: str, results: Sequence[LandscapeResult]) -> OverallDifference:
    logs, resampled = [], []
    for number, result in enumerate(results):
        reached = {s.strategy: s.reached_after for s in result.strategies}
        # Seeds are drawn anew within each landscape: across landscapes they share nothing.
        bootstrap = Bootstrap(len(reached[subject]), seed=number)
        needed = [_needed(reached[name], result.evaluations) for name in (subject, other)]
        logs.append(np.log(needed[0].mean() / needed[1].mean()))
        first, second = (bootstrap.resampled_means(n) for n in needed)
        resampled.append(np.log(first / second))
    differences = [d for r in results for d in r.differences if d.other == other]
    return OverallDifference(
        strategy=subject,
        other=other,
        evaluations_ratio=estimate(
            float(np.exp(np.mean(logs))), np.exp(np.mean(resampled, axis=0))
        ),
        fewer_count=sum(d.evaluations.high < 0 for d in differences),
        more_count=sum(d.evaluations.low > 0 for d in differences),
    )


def _subject(strategies: tuple[str, ...]) -> str:
    """Return the strategy that the others are compared with."""
    return _SUBJECT if _SUBJECT in strategies else strategies[0]


def _needed(reached_after: Sequence[int | None], evaluations: int) -> np.ndarray:
    """Return `(seed,)` evaluations to reach the target; the budget + 1 where it was not."""
    return np.array([float(evaluations + 1 if n is None else n) for n in reached_after])


def _speeds(searches: Sequence[SearchResult], evaluations: int) -> np.ndarray:
    """Return `(seed, evaluation)` best speeds; a search that ended early keeps what it had."""
    return np.array(
        [[*r.speeds, *[r.speeds[-1]] * (evaluations - len(r.speeds))] for r in searches]
    )
