"""Parents, directions and inspirations are drawn as the formulas say."""

from collections import Counter

import numpy as np
import pytest

from archive_svc.grids.grid import Entry, Grid
from archive_svc.search.curiosity import Curiosity
from archive_svc.search.gradient import GradientWeights, gradient_field
from archive_svc.search.selection import (
    ALPHA,
    EPSILON,
    SelectionContext,
    curiosity_parents,
    fitness_parents,
    gradient_aim,
    gradient_parents,
    inspirations,
    temperature,
    uniform_parents,
)
from archive_svc.search.transitions import Transitions
from kernel_foundry.domain.measures import Cell

EVEN = (1.0, 1.0, 1.0)

Move = tuple[Cell, Cell]
"""From a parent to a better child, that gained 0.2."""


def _entry(digest: str, fitness: float, cell: tuple[int, int, int]) -> Entry:
    return Entry(digest=digest, sequence=1, cell=cell, fitness=fitness)


def _view(
    *entries: Entry,
    moves: tuple[Move, ...] = (),
    emphasis: tuple[float, float, float] = EVEN,
    visitors: tuple[Entry, ...] = (),
    weights: GradientWeights | None = None,
) -> SelectionContext:
    grid, transitions = Grid(), Transitions()
    for entry in entries:
        grid.add(entry)
    for parent, child in moves:
        transitions.add(parent, child, gain=0.2, is_better=True)
    field = gradient_field(transitions, grid.worth, weights or GradientWeights(exploration=0.0))
    return SelectionContext(
        emphasis=emphasis,
        elites=grid.elites(),
        visitors=visitors,
        field=lambda: field,
        curiosity=Curiosity(),
    )


def _aims(
    view: SelectionContext, parent: Entry, *, shown: tuple[Entry, ...] = (), count: int = 400
) -> Counter[object]:
    rng = np.random.default_rng(5)
    return Counter(gradient_aim(view, parent, shown, rng) for _ in range(count))


GOOD, FAIR, POOR = (
    _entry("good", 0.9, (1, 1, 1)),
    _entry("fair", 0.89, (2, 1, 1)),
    _entry("poor", 0.3, (0, 0, 0)),
)


@pytest.mark.parametrize("parents", [fitness_parents, gradient_parents, uniform_parents])
def test_every_elite_can_be_a_parent(parents) -> None:
    weights = parents(_view(GOOD, FAIR, POOR))
    assert weights.sum() == pytest.approx(1)
    assert (weights >= EPSILON / 3 - 1e-12).all()


def test_fitness_decides_by_the_range_that_there_is() -> None:
    """Differences count against the spread of the elites, so that no scale is built in."""
    weights = fitness_parents(_view(GOOD, FAIR, POOR))
    small = [_entry(e.digest, 0.5 + e.fitness / 100, e.cell) for e in (GOOD, FAIR, POOR)]
    np.testing.assert_allclose(fitness_parents(_view(*small)), weights)
    assert weights[0] > weights[1] > 0.2 > weights[2]
    soft = np.exp(np.array([0, -0.01, -0.6]) / temperature(np.array([0.9, 0.89, 0.3])))
    np.testing.assert_allclose(weights, (1 - EPSILON) * soft / soft.sum() + EPSILON / 3)


def test_what_the_gradient_promises_is_a_share_of_the_choice() -> None:
    view = _view(GOOD, FAIR, POOR, moves=((FAIR.cell, (3, 1, 1)),) * 8)
    plain, drawn = fitness_parents(view), gradient_parents(view)
    assert drawn[1] > plain[1]
    assert abs(drawn - plain).max() <= ALPHA


def test_curiosity_goes_where_children_found_a_place() -> None:
    view = _view(GOOD, POOR)
    curiosity = Curiosity()
    for _ in range(4):
        curiosity.add("poor", was_added=True)
        curiosity.add("good", was_added=False)
    weights = curiosity_parents(
        SelectionContext(emphasis=EVEN, elites=view.elites, visitors=(), field=view.field,
             curiosity=curiosity)
    )  # fmt: skip
    assert weights[1] > 0.9


def test_the_target_lies_where_children_got_better() -> None:
    up, down = (GOOD.cell, (2, 1, 1)), (GOOD.cell, (1, 0, 1))
    aims = _aims(_view(GOOD, moves=(up, down) * 10), GOOD)
    assert aims.most_common(1)[0][0] in {(2, 0, 1), (2, 0, 2), (2, 0, 0)}
    upwards = sum(n for aim, n in aims.items() if aim is not None and aim[0] == 2)
    downwards = sum(n for aim, n in aims.items() if aim is not None and aim[0] == 0)
    assert upwards > 10 * downwards


@pytest.mark.parametrize("cell", [(3, 1, 1), (1, 1, 1), (0, 0, 0)])
def test_empty_cells_alone_give_no_direction(cell: Cell) -> None:
    leader = _entry("leader", 0.9, cell)
    view = _view(leader, POOR, weights=GradientWeights(exploration=5.0))
    assert set(_aims(view, leader)) == {None}


def test_an_elite_that_is_worth_as_much_backs_a_direction_if_it_is_shown() -> None:
    weights = GradientWeights(exploration=1.0)
    better = _entry("better", 0.95, (0, 1, 2))
    view = _view(better, FAIR, weights=weights)
    steps = {(-1, 0), (-1, 1), (0, 1)}
    aims = set(_aims(view, FAIR, shown=(better,))) - {None}
    assert aims
    assert {(aim[0] - FAIR.cell[0], aim[2] - FAIR.cell[2]) for aim in aims} <= steps
    assert {aim[1] for aim in aims} == {FAIR.cell[1]}
    assert set(_aims(view, FAIR)) == {None}
    assert set(_aims(view, better, shown=(FAIR,))) == {None}  # which is slower


def test_what_never_made_a_better_child_backs_nothing() -> None:
    grid, transitions = Grid(), Transitions()
    grid.add(GOOD)
    for _ in range(9):
        transitions.add(GOOD.cell, (2, 1, 1), gain=-0.2, is_better=False)
    field = gradient_field(transitions, grid.worth, GradientWeights(exploration=5.0))
    view = SelectionContext(
        emphasis=EVEN, elites=(GOOD,), visitors=(), field=lambda: field, curiosity=Curiosity()
    )
    assert set(_aims(view, GOOD)) == {None}


def test_targets_are_cells_of_the_grid_next_to_the_parent() -> None:
    corner = _entry("corner", 0.5, (3, 0, 3))
    moves = ((corner.cell, (2, 1, 2)),) * 4
    aims = _aims(_view(corner, moves=moves, weights=GradientWeights()), corner)
    assert set(aims) > {None}
    for aim in aims:
        assert aim is None or all(
            0 <= a <= 3 and abs(a - c) <= 1 for a, c in zip(aim, corner.cell, strict=True)
        )


def test_an_islands_emphasis_turns_the_direction() -> None:
    moves = ((GOOD.cell, (2, 1, 1)), (GOOD.cell, (1, 1, 2)))
    aims = _aims(_view(GOOD, moves=moves * 6, emphasis=(1.0, 0.0, 0.0)), GOOD)
    along = sum(n for aim, n in aims.items() if aim is not None and aim[0] == 2)
    across = sum(n for aim, n in aims.items() if aim is not None and aim[2] == 2)
    assert along > across + 50


def test_inspirations_are_elites_of_other_cells_also_of_other_islands() -> None:
    same = _entry("same cell", 0.95, GOOD.cell)
    visitor = _entry("visitor", 0.8, (3, 3, 3))
    view = _view(GOOD, FAIR, visitors=(same, visitor))
    seeds = range(30)
    found = {e for seed in seeds for e in inspirations(view, GOOD, np.random.default_rng(seed))}
    assert found == {FAIR, visitor}
    assert inspirations(_view(GOOD), GOOD, np.random.default_rng(0)) == ()
