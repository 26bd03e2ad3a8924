"""Draws of integers that a reference compares with, and of places from a whole table."""

import pytest
import torch

from evaluator_svc.judge.comparison.index_comparison import count_misplaced
from evaluator_svc.judge.comparison.needed_factor import needed_factor
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload
from evaluator_svc.judge.unusual_values.distributions import with_distribution
from kernel_foundry.domain.admission import Distribution
from tests.judge.judge_tasks import TOLERANCE, make_task, prepare

_IDS = "torch.randint(3, 4000, (rows, cols))"
_TABLE = "torch.randn(5000, 8)"


def _prepared(result: str, *inputs: str) -> PreparedWorkload:
    names = ", ".join(f"x{i}" for i in range(len(inputs)))
    forward = f"\ndef forward(self, {names}):\n    return {result}\n"
    task = make_task(forward, rows=64, cols=48, inputs=f"[{', '.join(inputs)}]")
    return prepare(task)


def _changed(prepared: PreparedWorkload, distribution: Distribution) -> InputSet:
    return with_distribution(prepared, prepared.input_set(5), distribution)


@pytest.mark.parametrize(
    ("result", "marks"),
    [
        ("(x0 != 0) * 1.0", {0}),
        ("(x0.unsqueeze(-1).int() == 7) * 1.0", {7}),
        ("torch.where((x0 == 1) | (x0 == 2), 0.5, 1.5)", {1, 2}),
        ("torch.isin(x0, torch.tensor([5, 9])) * 1.0", {5, 9}),
        ("x0.bool() * 1.0", {0}),
        ("(x0 >= 0) * 1.0", {-1, 0}),
        ("(x0 > 9) * 1.0", {9, 10}),
        ("torch.arange(9.0)[x0.clamp(0, 8)]", {-1, 0, 8, 9, 17}),
        ("1.0 / x0.clamp(min=1)", {0, 1}),
        ("(x0 + 1 == 7) * 1.0", set()),
        ("torch.arange(9000.0)[x0].clamp(0, 8)", set()),
    ],
)
def test_what_integers_are_compared_with_as_they_are(result: str, marks: set[int]) -> None:
    assert _prepared(result, _IDS).input_uses.marks.get(0, frozenset()) == marks


def test_rows_hold_several_marks_none_or_one_throughout() -> None:
    ids = "torch.randint(3, 4000, (rows, cols)).index_fill(1, torch.tensor([9]), 2)"
    prepared = _prepared("(x0 == 2).int().argmax(-1)", ids)
    (x,) = _changed(prepared, Distribution.BOUNDS).inputs
    counts = (x == 2).sum(-1)
    assert bool((counts == 0).any())
    assert bool((counts == 48).any())
    assert bool(((counts > 1) & (counts < 24)).any())


def test_a_reference_without_numbers_for_whole_rows_gets_none() -> None:
    masked = "torch.softmax(torch.zeros(rows, cols).masked_fill(x0 == 0, -torch.inf), -1)"
    (x,) = _changed(_prepared(masked, _IDS), Distribution.BOUNDS).inputs
    assert bool((x == 0).any())
    assert not bool((x == 0).all(-1).any())


def test_marks_beyond_a_table_stay_away() -> None:
    prepared = _prepared("x1[x0] * ((x0 != 0) & (x0 != 9999)).unsqueeze(-1)", _IDS, _TABLE)
    x, _ = _changed(prepared, Distribution.BOUNDS).inputs
    assert bool((x == 0).any())
    assert int(x.max()) < 5000


def test_masks_and_rows_in_order_keep_their_numbers() -> None:
    for inputs in ("torch.randint(0, 3, (rows, cols))", f"{_IDS}.sort(-1).values"):
        prepared = _prepared("(x0 == 7) * 1.0", inputs)
        ordinary = prepared.input_set(5)
        changed = with_distribution(prepared, ordinary, Distribution.BOUNDS)
        assert torch.equal(changed.inputs[0], ordinary.inputs[0])


def test_places_are_from_the_whole_table() -> None:
    prepared = _prepared("x1[x0]", "torch.randint(0, 40, (rows, cols))", _TABLE)
    x, _ = _changed(prepared, Distribution.PLACES).inputs
    assert 0.15 < float((x >= 40).float().mean()) < 0.35
    assert int(x.max()) > 4000
    assert int(x.min()) >= 0


def test_the_first_of_equal_integers_is_asked_for() -> None:
    prepared = _prepared("(x0 == 2).int().argmax(-1)", _IDS)
    changed = _changed(prepared, Distribution.BOUNDS)
    needed = needed_factor(changed, Distribution.BOUNDS, TOLERANCE)
    assert needed is not None
    assert not needed.tied
    last = torch.where(changed.inputs[0] == 2, torch.arange(48), 0).amax(-1)
    assert count_misplaced(changed, 0, changed.expected()[0], [last]) is None
