"""Rows of one draw that are of different distributions, where a workload is too large for all."""

import pytest
import torch

from evaluator_svc.judge import Judge
from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload
from evaluator_svc.judge.unusual_values.distributions import with_distribution
from evaluator_svc.judge.unusual_values.mixed_rows import with_mixed_rows
from evaluator_svc.messages.distribution_traits import Trait, with_trait
from kernel_foundry.domain.admission import Distribution, ValueRange
from kernel_foundry.domain.check import CheckResult
from tests.judge.judge_tasks import SOFTMAX, TOLERANCE, RunnerSide, make_task, prepare

MIXED = (Distribution.OFFSET, Distribution.LARGE, Distribution.SPARSE, Distribution.NEGATIVE)


def _prepared(body: str, inputs: str) -> PreparedWorkload:
    task = make_task(body, inputs=inputs, rows=200, cols=64)
    return prepare(task)


def test_blocks_of_rows_are_of_each_distribution_and_some_stay() -> None:
    prepared = _prepared(SOFTMAX, "[torch.randn(rows, cols)]")
    ordinary = prepared.input_set(5)
    (x,) = with_mixed_rows(prepared, ordinary, MIXED).inputs
    (before,) = ordinary.inputs
    stays = torch.eq(x, before).all(-1)
    assert 0.1 < float(stays.float().mean()) < 0.3
    is_large = x.abs().ge(63.0 * before.abs()).all(-1) & ~(x < 0).all(-1)
    is_sparse = torch.eq(x, 0.0).float().mean(-1) > 0.5
    is_negative = (x < 0).all(-1) & ~is_large
    for rows in (is_large, is_sparse, is_negative):
        assert 0.1 < float(rows.float().mean()) < 0.3
    # Not all of a distribution in one piece.
    assert int(stays.diff().sum()) > 2


def test_some_rows_are_next_to_nothing_where_the_reference_gives_their_results_their_size() -> None:
    kinds = (Distribution.SMALL, *MIXED)
    body = "def forward(self, x):\n    return x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt()"
    prepared = _prepared(body, "[torch.randn(4 * rows, cols)]")
    ordinary = prepared.input_set(5)
    (x,), (before,) = with_mixed_rows(prepared, ordinary, kinds).inputs, ordinary.inputs
    is_small = x.abs().amax(-1) < before.abs().amax(-1) / 100
    assert 8 <= int(is_small.sum()) <= 30
    assert set(kinds) - set(with_trait(Trait.BY_ROW)) == set()


def test_rows_that_belong_together_are_of_one_distribution() -> None:
    inputs = "[torch.randn(rows, cols), torch.randn(rows, 4, 32), torch.randn(cols)]"
    prepared = _prepared("def forward(self, x, y, z):\n    return x + z, y * 2", inputs)
    ordinary = prepared.input_set(5)
    changed = with_mixed_rows(prepared, ordinary, MIXED).inputs
    stays = [
        torch.eq(a, b).flatten(1).all(-1)
        for a, b in zip(changed[:2], ordinary.inputs, strict=False)
    ]
    assert torch.equal(*stays)
    assert torch.equal(changed[2], ordinary.inputs[2])


def test_a_symmetric_matrix_stays_as_it_is() -> None:
    inputs = "[(lambda a: a + a.mT)(torch.randn(rows, rows))]"
    prepared = _prepared("def forward(self, x):\n    return x @ x", inputs)
    ordinary = prepared.input_set(5)
    assert with_mixed_rows(prepared, ordinary, MIXED).inputs[0] is ordinary.inputs[0]
    alone = with_distribution(prepared, ordinary, Distribution.LARGE)
    assert alone.inputs[0] is not ordinary.inputs[0]


def _verdict(
    judge: Judge, kernel, *, body: str = SOFTMAX, is_lean: bool
) -> tuple[CheckResult, str]:
    task = make_task(body, rows=200, cols=64)
    ranges = tuple(
        ValueRange(distribution=d, factor=32.0, is_binding=True)
        for d in (Distribution.SIGNS, Distribution.OFFSET)
    )
    drawn, descriptors = judge.draw(
        task,
        task.workloads[0].name,
        TOLERANCE,
        (11, 11),
        tuple(value_range.distribution for value_range in ranges),
        mixed=MIXED,
        is_lean=is_lean,
    )
    try:
        side = RunnerSide(judge, drawn, descriptors)
        side.run(kernel, "x")
        *others, last = judge.verify_ranges(drawn.draw, ranges).verdicts
        if is_lean:  # the last one was loaded alone
            judge.load_seed(drawn.draw, 0)
            side.run(kernel, "x")
            others = list(judge.verify_ranges(drawn.draw, ranges).verdicts)
    finally:
        judge.release(drawn.draw)
    (first,) = others
    assert "signs" in first.check.note
    return last.check.result, last.check.note


def _plain(x: torch.Tensor) -> torch.Tensor:
    return x.exp() / x.exp().sum(-1, keepdim=True)


@pytest.mark.parametrize("is_lean", [False, True])
def test_what_is_wrong_on_one_of_them_shows_in_one_draw(judge: Judge, *, is_lean: bool) -> None:
    result, note = _verdict(judge, lambda x: torch.softmax(x, -1), is_lean=is_lean)
    assert result is CheckResult.PASSED
    assert "rows of different distributions" in note
    result, _ = _verdict(judge, _plain, is_lean=is_lean)
    assert result is CheckResult.FAILED


def test_where_rows_depend_on_each_other_no_lean_draw_refuses_anybody(judge: Judge) -> None:
    body = "def forward(self, x):\n    return x - x.mean(0)"
    result, _ = _verdict(judge, lambda x: x - 2.0 * x.mean(0), body=body, is_lean=True)
    assert result is CheckResult.SKIPPED
