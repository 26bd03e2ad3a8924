"""Transitions are added up for each cell and dimension, and fade with the generations."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from archive_svc.grids.grid import cell_index
from archive_svc.search.transitions import DECAY, GENERATION, Transitions

CELLS = st.tuples(*[st.integers(0, 3)] * 3)


def test_a_move_counts_in_the_dimensions_that_it_changes() -> None:
    transitions = Transitions()
    transitions.add((1, 2, 0), (2, 1, 0), gain=0.3, is_better=True)
    row = cell_index((1, 2, 0))

    assert transitions.weight[row].tolist() == [1, 1, 0]
    assert transitions.gain[row].tolist() == [0.3, -0.3, 0]  # up gained, so down lost
    assert transitions.up[row].tolist() == [[1, 1], [0, 0], [0, 0]]
    assert transitions.down[row].tolist() == [[0, 0], [1, 1], [0, 0]]
    assert transitions.weight.sum() == 2


def test_a_move_that_was_not_better_is_a_trial_without_success() -> None:
    transitions = Transitions()
    transitions.add((0, 0, 0), (0, 0, 2), gain=-0.1, is_better=False)
    assert transitions.up[0, 2].tolist() == [1, 0]
    assert transitions.gain[0, 2] == -0.1


def test_a_generation_fades_what_was_before() -> None:
    transitions = Transitions()
    for _ in range(GENERATION):
        transitions.add((0, 0, 0), (1, 0, 0), gain=0.1, is_better=True)
    assert np.isclose(transitions.weight[0, 0], GENERATION * DECAY)
    assert np.isclose(transitions.up[0, 0, 1], GENERATION * DECAY)
    assert transitions.count == GENERATION


@given(st.lists(st.tuples(CELLS, CELLS, st.floats(-1, 1), st.booleans()), max_size=GENERATION - 1))
def test_sums_within_a_generation_do_not_depend_on_the_order(moves) -> None:
    forward, backward = Transitions(), Transitions()
    for transitions, order in ((forward, moves), (backward, reversed(moves))):
        for parent, child, gain, is_better in order:
            transitions.add(parent, child, gain=gain, is_better=is_better)
    for name in ("weight", "gain", "up", "down"):
        np.testing.assert_allclose(getattr(forward, name), getattr(backward, name), atol=1e-12)
