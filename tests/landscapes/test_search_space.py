"""A landscape ready for searches: proposals stay in the table, measurements repeat under a seed."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive_svc.grids.result import Cell
from archive_svc.search.selection import Choice
from generator_svc.recipes import genome
from kernel_foundry.domain.candidate import Operator
from kernel_foundry.domain.fitness import correct_fitness
from landscapes.landscape import Landscape
from landscapes.search_space import (
    DIRECTION_SHARPNESS,
    TWO_PARAMETERS,
    LandscapeEvaluator,
    LandscapeGenerator,
    SearchSpace,
)
from tests.landscapes.conftest import LANDSCAPES, make_landscape


def choice_of(
    operator: Operator,
    parent: int | None = None,
    inspirations: tuple[int, ...] = (),
    target: Cell | None = None,
) -> Choice:
    return Choice(
        operator=operator,
        parent=None if parent is None else str(parent),
        inspirations=tuple(map(str, inspirations)),
        target=target,
        island="any",
    )


def test_mutations_are_those_of_the_recipes() -> None:
    assert TWO_PARAMETERS == genome.TWO_GENES
    assert DIRECTION_SHARPNESS == genome.DIRECTION_SHARPNESS


@given(
    name=st.sampled_from(sorted(LANDSCAPES)),
    seed=st.integers(0, 99),
    number=st.integers(0, 999),
    operator=st.sampled_from([Operator.MUTATE, Operator.REPAIR, Operator.TEMPLATISE]),
    data=st.data(),
)
def test_mutation_changes_as_few_parameters_as_the_table_allows(
    name: str, seed: int, number: int, operator: Operator, data: st.DataObject
) -> None:
    space = SearchSpace(LANDSCAPES[name])
    parent = data.draw(st.integers(0, len(space) - 1))
    target = data.draw(st.none() | st.tuples(*[st.integers(0, 3)] * 3))
    child = LandscapeGenerator(space, seed).propose(
        choice_of(operator, parent, target=target), number
    )
    changed = int(space.differing(parent)[child])
    if len(space) == 1:
        assert changed == 0
        return
    fewest = int(np.min(space.differing(parent)[space.differing(parent) > 0]))
    assert 1 <= changed <= max(2, fewest)


@given(seed=st.integers(0, 99), parents=st.tuples(*[st.integers(0, 47)] * 2))
def test_combination_takes_every_parameter_from_a_parent(
    seed: int, parents: tuple[int, int]
) -> None:
    space = SearchSpace(LANDSCAPES["separable"])
    first, second = parents
    child = LandscapeGenerator(space, seed).propose(
        choice_of(Operator.COMBINE, first, (second,)), seed
    )
    codes = space.codes
    assert ((codes[child] == codes[first]) | (codes[child] == codes[second])).all()


def test_target_draws_mutations_near_it() -> None:
    space = SearchSpace(LANDSCAPES["separable"])
    parent = space.cells.index((0, 0, 0))
    generator = LandscapeGenerator(space, seed=1)

    def mean_distance(target: Cell | None) -> float:
        cells = [
            space.cells[generator.propose(choice_of(Operator.MUTATE, parent, target=target), n)]
            for n in range(300)
        ]
        return float(np.mean([abs(np.subtract(c, (2, 1, 0))).sum() for c in cells if c]))

    assert mean_distance((2, 1, 0)) < mean_distance(None) - 0.2
    assert mean_distance((0, 0, 0)) > mean_distance(None) + 0.05


def test_seeds_are_the_same_whatever_was_proposed_between_them() -> None:
    space = SearchSpace(LANDSCAPES["separable"])
    plain, busy = LandscapeGenerator(space, seed=3), LandscapeGenerator(space, seed=3)
    seeds = [plain.propose(choice_of(Operator.SEED), n) for n in range(8)]
    found = []
    for number in range(8):
        found.append(busy.propose(choice_of(Operator.SEED), 2 * number))
        busy.propose(choice_of(Operator.MUTATE, 5), 2 * number + 1)
    assert seeds == found
    assert len(set(seeds)) > 4


def test_measurement_depends_on_the_seed_and_the_variant_alone(any_landscape: Landscape) -> None:
    space = SearchSpace(any_landscape)
    order = list(range(len(space)))
    forward = LandscapeEvaluator(space, seed=7)
    backward = LandscapeEvaluator(space, seed=7)
    first = [forward.evaluate(n) for n in order]
    second = [backward.evaluate(n) for n in reversed(order)]
    assert first == second[::-1]
    assert first == [forward.evaluate(n) for n in order]


def test_measurement_varies_with_the_seed_around_the_true_time() -> None:
    space = SearchSpace(make_landscape())
    position = random.Random(1).randrange(len(space))
    judged = [LandscapeEvaluator(space, seed).evaluate(position) for seed in range(200)]
    assert len({j.fitness for j in judged}) > 1
    within = [j.fitness <= space.true_fitness(position) <= j.optimistic for j in judged]
    assert np.mean(within) > 0.9


def test_failed_variant_has_its_outcomes_fitness_and_no_speedup() -> None:
    space = SearchSpace(LANDSCAPES["a third fails"])
    for position, variant in enumerate(space.landscape.variants):
        judged = LandscapeEvaluator(space, seed=0).evaluate(position)
        assert (judged.speedup is not None) == variant.passed
        assert (judged.fitness > 0.2) == variant.passed
        assert np.isfinite(space.true_ns[position]) == variant.passed


def test_correct_variant_without_measures_stands_at_the_origin() -> None:
    space = SearchSpace(LANDSCAPES["no measures"])
    assert set(space.cells) == {(0, 0, 0)}


@pytest.mark.parametrize(("baseline_ns", "expected"), [(5e6, 5e6), (None, None)])
def test_yardstick_is_the_baseline_or_the_median_variant(
    baseline_ns: float | None, expected: float | None
) -> None:
    space = SearchSpace(make_landscape(baseline_ns=baseline_ns))
    assert space.baseline_ns == (expected or float(np.median(space.true_ns)))
    assert space.fitness_at(space.baseline_ns) == pytest.approx(correct_fitness(1.0))
