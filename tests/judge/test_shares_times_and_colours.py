"""Draws with shares of one, equal colours, times in bursts, and small numbers beside one input."""

import pytest
import torch

from evaluator_svc.judge.admission.value_ranges import find_value_ranges
from evaluator_svc.judge.comparison.needed_factor import needed_factor
from evaluator_svc.judge.unusual_values.distributions import with_distribution
from kernel_foundry.domain.admission import Distribution
from tests.judge.judge_tasks import TOLERANCE, prepare, task_of

_FLOATS = "torch.randn(rows, cols)"
_SHARES = "torch.rand(rows, cols)"
_CLASSES = "(torch.rand(rows, cols) < 0.5).float()"
_LOSS = "nn.functional.binary_cross_entropy(x0, x1, reduction='none').mean(-1)"


def _drawn(
    distribution: Distribution, result: str, *inputs: str
) -> tuple[tuple[torch.Tensor, ...], tuple[torch.Tensor, ...], bool]:
    """Return a draw before and after, and whether candidates can be held to it."""
    prepared = prepare(task_of(result, *inputs))
    ordinary = prepared.input_set(5)
    changed = with_distribution(prepared, ordinary, distribution)
    is_held = needed_factor(changed, distribution, TOLERANCE) is not None
    return ordinary.inputs, changed.inputs, is_held


@pytest.mark.parametrize(
    ("result", "has_ones"),
    [
        ("-torch.xlogy(1 - x0, 1 - x0)", True),
        ("-torch.log(1 - x0)", False),  # infinite there
        ("x0 * 2", False),
    ],
)
def test_shares_are_one_where_that_gives_numbers(result: str, has_ones: bool) -> None:
    _, (shares,), is_held = _drawn(Distribution.BOUNDS, result, _SHARES)
    assert bool((shares == 1).any()) is has_ones
    assert is_held


@pytest.mark.parametrize(
    "distribution", [Distribution.SPARSE, Distribution.POWERS, Distribution.BOUNDS]
)
def test_labels_of_two_classes_leave_a_loss_defined(distribution: Distribution) -> None:
    """Moved by a rounding error they would be beyond one, where the loss takes none."""
    _, (shares, labels), is_held = _drawn(distribution, _LOSS, _SHARES, _CLASSES)
    assert bool((labels == 1).any())
    assert bool((shares == 1).any()) is (distribution is Distribution.BOUNDS)
    assert is_held


def test_colours_are_equal_where_they_are_compared() -> None:
    result = "torch.where(x0.amax(1) == x0[:, 0], x0[:, 1] - x0[:, 2], x0[:, 2])"
    _, (x,), is_held = _drawn(Distribution.BOUNDS, result, "torch.rand(rows, 3, cols)")
    is_grey = (x == x[:, :1]).all(1)
    assert 0.05 < float(is_grey.float().mean()) < 0.2
    assert bool(((x[:, 0] == x[:, 1]) & ~is_grey).any())
    assert is_held


def test_numbers_in_order_are_mostly_one_where_they_are_compared() -> None:
    result = "(x0[:, :, None] == x0[:, None, :]).float().mean(-1)"
    (old,), (new,), is_held = _drawn(
        Distribution.PLACES, result, "torch.randint(0, 9, (rows, cols)).sort(-1).values"
    )
    most = [int(row.bincount().max()) for row in new]
    assert min(most) >= old.shape[1] // 2
    assert bool((new.diff(dim=-1) >= 0).all())
    assert is_held


def test_times_of_which_no_two_are_equal_have_bursts() -> None:
    result = "(x0[:, :, None] - x0[:, None, :] < 100).sum(-1)"
    (old,), (new,), is_held = _drawn(
        Distribution.PLACES, result, "torch.randint(9, 50, (rows, cols)).cumsum(-1)"
    )
    steps = new.diff(dim=-1)
    assert bool((steps >= 1).all())
    assert bool(((steps == 1).sum(-1) == steps.shape[1] // 2).all())
    assert torch.equal(new[:, [0, -1]], old[:, [0, -1]])
    assert is_held


def test_a_small_number_under_a_root_shows_beside_other_inputs() -> None:
    result = "x0 - 1e-3 * x1 / (x2.sqrt() + 1e-8)"
    old, new, is_held = _drawn(Distribution.SMALL, result, _FLOATS, _FLOATS, _SHARES)
    assert [torch.equal(a, b) for a, b in zip(old, new, strict=True)] == [True, False, False]
    assert bool((new[2] < 1e-10).any())
    assert is_held


@pytest.mark.parametrize(
    ("inputs", "is_tried"), [("torch.randint(0, 2**40, (rows, cols))", True), (_FLOATS, False)]
)
def test_whole_numbers_are_in_runs_for_references_that_work_element_by_element(
    inputs: str, is_tried: bool
) -> None:
    prepared = prepare(task_of("x0 + 1", inputs))
    found = find_value_ranges([prepared], TOLERANCE, 5)[prepared.workload.name]
    assert (Distribution.ORDERED in {r.distribution for r in found}) is is_tried
