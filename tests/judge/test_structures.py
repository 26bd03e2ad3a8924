"""Inputs bound to each other as no draw has them: alike, dense, extreme, near one, far from it."""

from functools import partial

import pytest
import torch

from evaluator_svc.judge.admission.value_ranges import find_value_ranges
from evaluator_svc.judge.tensors.structure import structures
from evaluator_svc.judge.unusual_values.changed_values import CHANGES
from evaluator_svc.judge.unusual_values.distributions import with_distribution
from evaluator_svc.judge.unusual_values.whole_numbers import absolute
from kernel_foundry.domain.admission import Distribution
from kernel_foundry.domain.task import Task
from tests.judge.judge_tasks import SOFTMAX, TOLERANCE, make_task, prepare, task_of

WORDS = "torch.randint(0, 26, (rows, cols), dtype=torch.int32)"
BAND = "torch.randn(rows, rows) * ((torch.arange(rows)[:, None] - torch.arange(rows)).abs() < 4)"
MASK = "torch.rand(rows, cols) < 0.5"


_task = partial(task_of, rows=40, cols=60)


def _drawn(task: Task, distribution: Distribution) -> tuple[torch.Tensor, ...]:
    """Return the inputs of a draw; they are those of an ordinary one where nothing binds there."""
    prepared = prepare(task)
    found = find_value_ranges([prepared], TOLERANCE, 101)
    binding = {r.distribution for ranges in found.values() for r in ranges if r.is_binding}
    ordinary = prepared.input_set(5)
    changed = with_distribution(prepared, ordinary, distribution)
    is_changed = any(a is not b for a, b in zip(changed.inputs, ordinary.inputs, strict=True))
    assert is_changed is (distribution in binding)
    return changed.inputs


def test_inputs_of_one_shape_are_alike_and_moved() -> None:
    words = WORDS.replace("rows", "128")
    one, two = _drawn(_task("(x0 != x1).sum(-1)", words, words), Distribution.ALIKE)
    places = torch.arange(one.shape[1])
    shifts, ends = [], []
    for a, b in zip(one, two, strict=True):
        shift = next(s for s in range(60) if int((a.roll(s) != b).count_nonzero()) <= 20)
        shifts.append(shift)
        apart = places[a.roll(shift) != b].tolist()
        ends += apart if len(apart) == 1 else []
    assert 20 <= shifts.count(0) <= 65
    assert max(shifts) > 15
    # Of some that are not moved one element differs, of some of these the last one.
    assert 2 <= len(ends) < shifts.count(0)
    assert len(places) - 1 in ends
    assert min(ends) < len(places) - 1


def test_sequences_of_vectors_move_along_the_sequence() -> None:
    vectors = "torch.randn(3, rows, 8)"
    one, two = _drawn(_task("(x0 - x1).square().sum(-1)", vectors, vectors), Distribution.ALIKE)
    assert all(
        any(torch.equal(a.roll(s, 0), b) for s in range(40)) for a, b in zip(one, two, strict=True)
    )


def test_places_and_what_is_never_negative_stay_in_their_range() -> None:
    task = _task("torch.arange(9.0)[x1] * x0", WORDS, WORDS.replace("26", "9"))
    assert int(_drawn(task, Distribution.ALIKE)[1].max()) < 9
    task = _task("x0 / (1 + x1).sqrt()", "torch.randn(rows, cols)", "torch.rand(rows, cols)")
    assert float(_drawn(task, Distribution.ALIKE)[1].min()) >= 0


def test_zeros_that_always_lie_alike_are_filled() -> None:
    band, _ = _drawn(_task("x0 @ x1", BAND, "torch.randn(rows, cols)"), Distribution.DENSE)
    assert bool((band != 0).all())


@pytest.mark.parametrize("matrix", ["torch.randn(rows, rows).triu()", "torch.randn(rows).diag()"])
def test_triangles_keep_their_half(matrix: str) -> None:
    found, _ = _drawn(_task("x0 @ x1", matrix, "torch.randn(rows, cols)"), Distribution.DENSE)
    assert bool((found.tril(-1) == 0).all()) is ("triu" in matrix)


def test_zeros_that_are_drawn_are_nothing_to_fill() -> None:
    (found,) = _drawn(_task("x0 * 2", "torch.randn(rows, cols).relu()"), Distribution.DENSE)
    assert bool((found == 0).any())


def test_masks_have_rows_that_keep_all_or_nothing() -> None:
    task = _task("(x0 * x1).sum(-1) / x1.sum(-1).clamp(min=1)", "torch.randn(rows, cols)", MASK)
    counts = _drawn(task, Distribution.EXTREMES)[1].sum(-1).tolist()
    assert counts.count(0) == counts.count(60) == 5


def test_no_row_is_empty_where_the_reference_takes_none() -> None:
    task = _task("(x0 * x1).sum(-1) / x1.sum(-1)", "torch.randn(rows, cols)", MASK)
    counts = _drawn(task, Distribution.EXTREMES)[1].sum(-1).tolist()
    assert counts.count(0) == 0
    assert counts.count(60) == 5


def test_one_of_several_stays_so() -> None:
    choice = "torch.eye(cols)[torch.randint(0, cols, (rows,))]"
    (found,) = _drawn(_task("x0 * 2", choice), Distribution.EXTREMES)
    assert found.sum(-1).tolist() == [1.0] * 40


def test_shares_are_zero_and_one() -> None:
    task = _task("torch.special.xlogy(x0, x0).sum(-1)", "torch.randn(rows, cols).softmax(-1)")
    (found,) = _drawn(task, Distribution.EXTREMES)
    assert "shares" in structures(found)
    counts = (found > 0).sum(-1)
    assert int((counts == 1).sum()) == 5
    assert int(((counts > 1) & (counts < 60)).sum()) == 5


def test_some_labels_of_a_loss_are_to_be_ignored() -> None:
    loss = "nn.functional.cross_entropy(x0, x1)"
    task = _task(loss, "torch.randn(rows, cols)", "torch.randint(0, cols, (rows,))")
    labels = _drawn(task, Distribution.EXTREMES)[1]
    assert 1 <= int((labels == -100).sum()) < 20


def test_products_of_many_do_not_vanish() -> None:
    inputs = "torch.rand(8, 4000)"
    for result, distribution in (
        ("torch.cumprod(x0, -1)", Distribution.NEAR_ONE),
        ("torch.cumprod(1 - x0, -1)", Distribution.NEAR_ZERO),
    ):
        (found,) = _drawn(_task(result, inputs), distribution)
        factors = found if distribution is Distribution.NEAR_ONE else 1 - found
        assert float(factors.cumprod(-1)[:, 1000].min()) > 1e-2
    assert torch.equal(
        _drawn(_task("x0 * 2", inputs), Distribution.NEAR_ONE)[0],
        prepare(_task("x0 * 2", inputs)).input_set(5).inputs[0],
    )


@pytest.mark.parametrize(
    "logits",
    ["torch.randn(rows, cols).half()", "0.01 * torch.randn(rows, cols)"],
    ids=["half", "small"],
)
def test_an_exponential_overflows_whatever_the_usual_size(logits: str) -> None:
    (found,) = _drawn(make_task(SOFTMAX, inputs=f"[{logits}]"), Distribution.ABSOLUTE)
    assert 100 < float(found.max()) <= 240
    assert torch.equal(found, found.bfloat16().to(found.dtype).round())


def test_where_large_inputs_reach_as_far_there_is_no_other_draw() -> None:
    x = torch.randn(40, 60)
    assert absolute(x) is x


def test_graphs_are_cycles_where_steps_are_repeated() -> None:
    body = """
def forward(self, edges):
    reached = edges.float() + torch.eye(rows)
    for _ in range(6):
        reached = (reached @ reached).clamp(max=1.0)
    return reached > 0.5
"""
    inputs = "[torch.rand(3, rows, rows) < 0.1]"
    (edges,) = _drawn(make_task(body, rows=40, inputs=inputs), Distribution.BLOCKS)
    assert bool((edges.sum(-1) == 1).all() and (edges.sum(-2) == 1).all())
    reached = torch.eye(40)
    for _ in range(39):
        reached = reached @ edges[0].float()
        assert not reached.diagonal().any()  # nobody is back before all were there
    mutual = "[(lambda m: m | m.mT)(torch.rand(3, rows, rows) < 0.1)]"
    (edges,) = _drawn(make_task(body, rows=40, inputs=mutual), Distribution.BLOCKS)
    assert torch.equal(edges, edges.mT)


def test_the_largest_of_half_of_the_rows_lie_side_by_side_or_at_an_even_distance() -> None:
    """So that one of 16 work-items has more of them than it may keep."""
    found = CHANGES[Distribution.MAGNITUDES](torch.randn(256, 4096))
    steps = found.abs().topk(8).indices.sort(-1).values.diff(dim=-1)
    even = [s for s in range(9) if bool((steps % 2**s == 0).all(-1).any())]
    is_near = steps.sum(-1) < 16 * 256
    assert float(is_near.float().mean()) > 0.3
    assert even[-1] == 8
    lanes = found.abs().topk(8).indices % 16
    crowded = (lanes[:, :, None] == lanes[:, None]).sum(-1).amax(-1)
    assert float((crowded > 6).float().mean()) > 0.1
    assert float((crowded < 5).float().mean()) > 0.4


def test_symmetric_matrices_are_scaled_from_both_sides() -> None:
    m = torch.randn(2, 30, 30, dtype=torch.float64)
    matrix = m @ m.mT + torch.eye(30)
    matrix = (matrix + matrix.mT) / 2
    found = CHANGES[Distribution.MAGNITUDES](matrix)
    assert torch.equal(found, found.mT)
    values, before = torch.linalg.eigvalsh(found), torch.linalg.eigvalsh(matrix)
    assert bool((values > 0).all())
    assert bool((values[:, -1] / values[:, 0] > 30 * before[:, -1] / before[:, 0]).all())
