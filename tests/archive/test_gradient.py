"""The gradient points where children got better, where cells are empty, and never outside."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive_svc.grids.grid import CELL_COUNT, cell_index
from archive_svc.search.gradient import POSITIONS, SHRINKAGE, GradientWeights, gradient_field
from archive_svc.search.transitions import Transitions
from kernel_foundry.domain.measures import LEVELS, Cell

WEIGHTS = GradientWeights()
EMPTY = np.zeros(CELL_COUNT)
CELLS = st.tuples(*[st.integers(0, 3)] * 3)
MOVES = st.tuples(CELLS, CELLS, st.floats(-1, 1), st.booleans())

Move = tuple[Cell, Cell, float, bool]
"""Cells of parent and child, gain, and whether the child is better."""


def _transitions(*moves: Move) -> Transitions:
    transitions = Transitions()
    for parent, child, gain, is_better in moves:
        transitions.add(parent, child, gain=gain, is_better=is_better)
    return transitions


def _up(gain: float, is_better: bool = True) -> Move:
    return ((1, 1, 1), (2, 1, 1), gain, is_better)


def test_an_empty_run_leaves_exploration_alone() -> None:
    field = gradient_field(Transitions(), EMPTY, WEIGHTS)
    assert not field.fitness.any()
    assert not field.rate.any()
    assert not field.confidence.any()
    inner = cell_index((1, 1, 1))
    np.testing.assert_allclose(field.total[inner], 0.2 * field.exploration[inner])


def test_gains_along_a_dimension_point_along_it() -> None:
    here = cell_index((1, 1, 1))
    better = gradient_field(_transitions(*[_up(0.2)] * 5), EMPTY, WEIGHTS)
    worse = gradient_field(_transitions(*[_up(-0.2, is_better=False)] * 5), EMPTY, WEIGHTS)
    assert better.fitness[here, 0] > 0 > worse.fitness[here, 0]
    assert better.rate[here, 0] > 0 > worse.rate[here, 0]
    assert not better.fitness[here, 1:].any()


def test_few_observations_move_little() -> None:
    """By shrinkage and priors: one lucky child is not yet a direction."""
    here = cell_index((1, 1, 1))
    other = [((3, 3, 3), (2, 3, 3), -1.0, False)] * 12
    one = gradient_field(_transitions(_up(0.2), *other), EMPTY, WEIGHTS)
    many = gradient_field(_transitions(*[_up(0.2)] * 12, *other), EMPTY, WEIGHTS)
    assert 0 < one.fitness[here, 0] < many.fitness[here, 0] / 2
    assert 0 < one.rate[here, 0] < many.rate[here, 0] / 2
    assert 0 < one.confidence[here] < many.confidence[here] < 1


def test_the_formulas_at_a_lone_cell() -> None:
    """Two moves up with gains 0.2 and 0.1, one of them surely better; neighbours count less."""
    field = gradient_field(_transitions(_up(0.2), _up(0.1, is_better=False)), EMPTY, WEIGHTS)
    here, far = cell_index((1, 1, 1)), cell_index((1, 1, 3))
    assert field.rate[here, 0] == pytest.approx((1 + 1) / (2 + 2) - 1 / 2)
    assert field.fitness[here, 0] == pytest.approx(1.0)  # the largest there is
    assert 0 < field.fitness[far, 0] < 0.1
    assert field.confidence[here] == pytest.approx(2 / (2 + SHRINKAGE))


def test_exploration_points_to_what_is_empty_or_weak_and_not_where_aims_missed() -> None:
    worth = np.full(CELL_COUNT, 0.8)
    worth[cell_index((3, 1, 1))] = 0.0
    field = gradient_field(Transitions(), worth, WEIGHTS)
    np.testing.assert_allclose(field.exploration[cell_index((0, 1, 1))], [1, 0, 0], atol=1e-12)
    np.testing.assert_allclose(field.exploration[cell_index((3, 3, 1))], [0, -1, 0], atol=1e-12)

    worth[cell_index((1, 3, 1))] = 0.0
    transitions = Transitions()
    for _ in range(9):
        transitions.miss((3, 1, 1))
    missed = gradient_field(transitions, worth, WEIGHTS)
    assert missed.exploration[cell_index((1, 1, 1)), 1] > 0.9


@given(
    moves=st.lists(MOVES, max_size=40), worth=st.lists(st.floats(0, 1), min_size=64, max_size=64)
)
def test_the_whole_is_bounded_and_stays_inside(moves, worth) -> None:
    field = gradient_field(_transitions(*moves), np.array(worth), WEIGHTS)
    assert np.isfinite(field.total).all()
    assert (np.abs(field.fitness) <= 1).all()
    assert (np.abs(field.rate) < 1).all()
    assert (np.linalg.norm(field.exploration, axis=1) <= 1 + 1e-9).all()
    assert (field.total[POSITIONS == 0] >= 0).all()
    assert (field.total[POSITIONS == LEVELS - 1] <= 0).all()


@pytest.mark.parametrize("part", ["fitness", "rate", "exploration"])
def test_a_part_can_be_left_out(part: str) -> None:
    transitions = _transitions(*[_up(0.2)] * 5)
    whole = gradient_field(transitions, EMPTY, WEIGHTS)
    kept = {name: 0.0 if name == part else getattr(WEIGHTS, name)
            for name in ("fitness", "rate", "exploration")}  # fmt: skip
    without = gradient_field(transitions, EMPTY, GradientWeights(**kept))
    here = cell_index((1, 1, 1))
    difference = whole.total[here] - without.total[here]
    np.testing.assert_allclose(difference, getattr(WEIGHTS, part) * getattr(whole, part)[here])
