"""Draws with rows in order and in runs, with stretches and elements in common, and chains."""

from functools import partial

import pytest
import torch

from evaluator_svc.judge.admission.value_ranges import find_value_ranges
from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload
from evaluator_svc.judge.tensors.structure import points_back
from evaluator_svc.judge.timed_calls.exchangeable import is_exchangeable
from evaluator_svc.judge.unusual_values.distributions import with_distribution
from kernel_foundry.domain.admission import Distribution
from kernel_foundry.domain.task import Task
from tests.judge.judge_tasks import TOLERANCE, make_task, task_of

_FLOATS = "torch.randn(rows, cols)"
_TOKENS = "torch.randint(0, 8, (rows, cols))"
_PARENTS = "(torch.rand(rows) * torch.arange(rows)).long()"


_task = partial(task_of, rows=256, cols=128)


def _prepared(task: Task) -> PreparedWorkload:
    device = torch.device("cpu")
    return PreparedWorkload(task, task.workloads[0], device=device, memory_bytes=1 << 33)


def _drawn(task: Task, distribution: Distribution) -> tuple[torch.Tensor, ...]:
    prepared = _prepared(task)
    return with_distribution(prepared, prepared.input_set(5), distribution).inputs


def _longest_run(tokens: torch.Tensor) -> torch.Tensor:
    place = torch.arange(tokens.shape[1])
    begins = torch.ones_like(tokens, dtype=torch.bool)
    begins[:, 1:] = tokens[:, 1:] != tokens[:, :-1]
    return (place - torch.where(begins, place, 0).cummax(-1).values + 1).amax(-1)


def test_floats_rise_and_fall_along_rows_and_along_columns() -> None:
    task = _task("x0.cummax(-1).values", _FLOATS)
    (x,) = _drawn(task, Distribution.ORDERED)
    ordinary = _prepared(task).input_set(5).inputs[0]
    assert torch.equal(x.flatten().sort().values, ordinary.flatten().sort().values)
    for lines in (x[:128], x[128:].T):
        steps = lines.diff(dim=-1)
        assert int((steps >= 0).all(-1).count_nonzero()) > len(lines) // 4
        assert int((steps <= 0).all(-1).count_nonzero()) > len(lines) // 4
        assert int((steps > 0).any(-1).logical_and((steps < 0).any(-1)).count_nonzero()) > 0


def test_integers_have_rows_of_one_and_runs_that_several_inputs_have_together() -> None:
    x, y = _drawn(_task("x0 + x1", _TOKENS, _TOKENS), Distribution.ORDERED)
    longest = _longest_run(x[:128])
    assert int((longest == 128).count_nonzero()) > 8
    assert int(((longest > 24) & (longest < 128)).count_nonzero()) > 16
    assert int((longest < 8).count_nonzero()) > 8
    both = _longest_run(8 * x[:128] + y[:128])
    assert int(((both > 16) & (both < 128)).count_nonzero()) > 8


@pytest.mark.parametrize(
    "values",
    [
        f"{_FLOATS}.sort(-1).values",
        "torch.rand(rows, cols) < 0.5",
        "torch.stack([torch.randperm(cols) for _ in range(rows)])",
        _PARENTS,
    ],
)
def test_what_is_bound_keeps_its_order(values: str) -> None:
    task = _task("x0 * 1.0", values)
    prepared = _prepared(task)
    ordinary = prepared.input_set(5)
    assert with_distribution(prepared, ordinary, Distribution.ORDERED) is ordinary


def test_order_binds_counts_that_follow_from_comparisons() -> None:
    """As the length of a rise does, which no rounding decides."""
    task = _task("(x0.diff(dim=-1) > 0).long().cumprod(-1).sum(-1)", _FLOATS)
    (ranges,) = find_value_ranges([_prepared(task)], TOLERANCE, 101).values()
    assert any(r.distribution is Distribution.ORDERED and r.is_binding for r in ranges)


def test_rows_have_stretches_of_longer_ones() -> None:
    word = "torch.randint(0, 64, (rows, 24))"
    text = "torch.randint(0, 64, (rows, cols))"
    texts, words = _drawn(_task("x0.sum() + x1.sum()", text, word), Distribution.ALIKE)
    windows = texts.unfold(1, 24, 1) == words[:, None]
    agreeing = windows.long().cumprod(-1).sum(-1).amax(-1)
    assert int((agreeing == 24).count_nonzero()) > 32
    assert int(((agreeing > 8) & (agreeing < 24)).count_nonzero()) > 8
    assert int((agreeing < 4).count_nonzero()) > 64


def test_elements_are_equal_to_what_they_are_compared_with() -> None:
    body = """
def __init__(self):
    super().__init__()
    self.level = nn.Parameter(torch.randn(cols))
def forward(self, x):
    return torch.where(x > self.level, x, 0.0)
"""
    prepared = _prepared(make_task(body, rows=256, cols=128))
    ordinary = prepared.input_set(5)
    changed = with_distribution(prepared, ordinary, Distribution.BOUNDS)
    (level,) = changed.state.values()
    share = float((changed.inputs[0] == level).float().mean())
    assert 0.04 < share < 0.1
    assert not bool((ordinary.inputs[0] == level).any())
    plain = _prepared(_task("torch.where(x0 > 0, x0 * x1, 0.0)", _FLOATS, _FLOATS))
    inputs = plain.input_set(5)
    assert with_distribution(plain, inputs, Distribution.BOUNDS) is inputs


def test_numbers_lie_on_the_edges_that_they_are_placed_between() -> None:
    edges = "torch.randn(15).sort().values"
    x, found = _drawn(_task("torch.bucketize(x0, x1)", _FLOATS, edges), Distribution.BOUNDS)
    assert 0.08 < float(torch.isin(x, found).float().mean()) < 0.16


def test_parents_stay_before_their_children_and_half_of_them_are_a_chain() -> None:
    result = "x0[x0] + x0"
    task = _task(result, _PARENTS, rows=4096)
    (ordinary,) = _prepared(task).input_set(5).inputs
    assert points_back(ordinary)
    assert not is_exchangeable(ordinary)
    (parents,) = _drawn(task, Distribution.PLACES)
    assert points_back(parents)
    own = torch.arange(4096)
    assert _longest_run((own - parents)[None]).item() >= 2048


def test_integers_that_fill_their_type_have_both_signs_and_the_least_of_all() -> None:
    packed = "torch.randint(0, 2**31 - 1, (rows, cols), dtype=torch.int32)"
    (words,) = _drawn(_task("(x0 >> 28) & 15", packed), Distribution.LARGE_INTEGERS)
    assert 0.4 < float((words < 0).float().mean()) < 0.6
    small = "torch.randint(-127, 128, (rows, cols), dtype=torch.int8)"
    (x,) = _drawn(_task("x0.int().abs().sum(-1)", small), Distribution.LARGE_INTEGERS)
    assert 0.004 < float((x == -128).float().mean()) < 0.016


def test_of_large_inputs_only_the_first_rows_are_put_in_order() -> None:
    task = _task("x0.cummax(-1).values", _FLOATS, rows=(1 << 22) // 128 + 64)
    (x,) = _drawn(task, Distribution.ORDERED)
    (ordinary,) = _prepared(task).input_set(5).inputs
    assert torch.equal(x[-64:], ordinary[-64:])
    assert not torch.equal(x[:64], ordinary[:64])
