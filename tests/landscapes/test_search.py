"""One search on a landscape: budget, repeats, and what it reports."""

import itertools

import numpy as np
import pytest

from kernel_foundry.sdk.loop import proposer
from landscapes.landscape import Landscape
from landscapes.search import REACHED_SHARE, REPEATS_BEFORE_EXHAUSTED, SearchResult, search
from landscapes.search_space import LandscapeEvaluator, LandscapeVerdict, SearchSpace
from landscapes.strategies import STRATEGIES
from tests.landscapes.conftest import LANDSCAPES


class Recorder(LandscapeEvaluator):
    """Remembers what it was asked to judge."""

    def __init__(self, space: SearchSpace, seed: int) -> None:
        super().__init__(space, seed)
        self.asked: list[int] = []

    def evaluate(self, position: int) -> LandscapeVerdict:
        self.asked.append(position)
        return super().evaluate(position)


def run_of(landscape: Landscape, strategy: str, seed: int, evaluations: int) -> SearchResult:
    space = SearchSpace(landscape)
    evaluator = LandscapeEvaluator(space, seed)
    return search(space, evaluator, strategy=strategy, seed=seed, evaluations=evaluations)


def test_runs_end_on_repeats_as_the_loop_does() -> None:
    assert REPEATS_BEFORE_EXHAUSTED == proposer.REPEATS_BEFORE_EXHAUSTED


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_run_judges_each_variant_once_and_within_its_budget(
    any_landscape: Landscape, strategy: str
) -> None:
    space = SearchSpace(any_landscape)
    evaluator = Recorder(space, seed=2)
    run = search(space, evaluator, strategy=strategy, seed=2, evaluations=20)
    assert len(evaluator.asked) == len(set(evaluator.asked)) == len(run.speeds)
    assert len(run.speeds) <= min(20, len(space))
    assert len(run.speeds) == min(20, len(space)) or run.is_exhausted
    assert all(a <= b for a, b in itertools.pairwise(run.speeds))
    found = space.true_ns[evaluator.asked].min()
    assert run.speeds[-1] == pytest.approx(space.best_ns / found)
    cells = {space.cells[n] for n in evaluator.asked if np.isfinite(space.true_ns[n])}
    assert run.coverage == len(cells) / 64
    assert 0 <= run.qd_score <= len(cells) * space.fitness_at(space.best_ns / 2)
    if run.reached_after is not None:
        assert run.speeds[run.reached_after - 1] >= REACHED_SHARE
        assert run.reached_after == 1 or run.speeds[run.reached_after - 2] < REACHED_SHARE


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_same_seed_gives_the_same_run(strategy: str) -> None:
    landscape = LANDSCAPES["a third fails"]
    assert run_of(landscape, strategy, 5, 20) == run_of(landscape, strategy, 5, 20)
    assert run_of(landscape, strategy, 5, 20) != run_of(landscape, strategy, 6, 20)


def test_strategies_start_from_the_same_seed_and_measurement() -> None:
    landscape = LANDSCAPES["separable"]
    for seed in range(10):
        firsts = {run_of(landscape, name, seed, 1).speeds for name in STRATEGIES}
        assert len(firsts) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["separable", "one cell", "no measures", "constrained"])
def test_gradient_finds_the_best_of_a_small_landscape(name: str) -> None:
    landscape = LANDSCAPES[name]
    runs = [run_of(landscape, "gradient", seed, len(landscape.variants)) for seed in range(6)]
    assert np.mean([run.speeds[-1] for run in runs]) > 0.97


def test_only_correct_variant_is_what_there_is_to_find() -> None:
    run = run_of(LANDSCAPES["all failed but one"], "best_of_n", 0, 48)
    assert set(run.speeds) <= {0.0, 1.0}
    assert run.coverage in (0, 1 / 64)
