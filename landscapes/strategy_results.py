"""Strategies compared over many searches: what was counted, with 95 % intervals."""

from dataclasses import dataclass

from kernel_foundry.sdk.statistics.estimate import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Best true speed found so far, a share of the best variant's, after each evaluation."""

    mean: tuple[float, ...]
    """Over seeds; the first is after one evaluation."""
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyResult:
    """What a strategy came to on one landscape."""

    strategy: str
    curve: Curve
    evaluations_mean: Estimate
    """Evaluations to reach the target; a search that did not counts as the budget + 1, so that this
    is a restricted mean: a lower bound where searches did not reach it."""
    evaluations_median: Estimate
    reached_after: tuple[int | None, ...]
    """Of each seed, in order; None where the budget was not enough."""
    reached_share: Estimate
    """Share of seeds that reached the target."""
    exhausted_count: int
    """Searches that ended early because all proposals had been judged before."""
    final_speed: Estimate
    """Best true speed at the end, a share of the best variant's."""
    mean_speed: Estimate
    """Mean of the curve: the area below it, a share of the largest possible."""
    coverage: Estimate
    """Share of the grid's cells with a correct variant found."""
    qd_score: Estimate
    """Sum over these cells of the best true fitness found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyDifference:
    """`strategy` minus `other`, paired by seed, on one landscape."""

    strategy: str
    other: str
    evaluations: Estimate
    """Difference of the evaluations to reach the target; below zero: `strategy` needs fewer."""
    evaluations_excludes_zero: bool
    mean_speed: Estimate
    """Difference of the curves' means; above zero: `strategy` is faster on its way."""
    mean_speed_excludes_zero: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LandscapeResult:
    """Strategies compared on one landscape."""

    name: str
    file: str
    task: str
    language: str
    device: str
    variant_count: int
    correct_count: int
    target_count: int
    """Variants that are as fast as the target."""
    cell_count: int
    """Cells of the grid with a correct variant."""
    drawing_evaluations: float
    """Expected evaluations to the target of drawing variants blindly, each once. Where that is
    little more than what a search starts with, a landscape cannot tell strategies apart."""
    best_ns: float
    """True time of the best variant."""
    baseline_ns: float
    """The yardstick of fitness."""
    evaluations: int
    """Budget of each search."""
    strategies: tuple[StrategyResult, ...]
    differences: tuple[StrategyDifference, ...]
    """Of the default strategy, or of the first one, to every other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OverallDifference:
    """`strategy` against `other` over all landscapes, each of the same weight."""

    strategy: str
    other: str
    evaluations_ratio: Estimate
    """Geometric mean over landscapes of the ratio of mean evaluations to reach the target."""
    fewer_count: int
    """Landscapes on which `strategy` needs fewer, beyond doubt (95 %)."""
    more_count: int
    """Landscapes on which it needs more, beyond doubt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchComparison:
    """Strategies compared on landscapes."""

    target: float
    """Share of the best variant's speed that counts as reached."""
    seed_count: int
    first_seed: int
    landscapes: tuple[LandscapeResult, ...]
    overall: tuple[OverallDifference, ...]
    """Empty for one strategy."""
