"""Which references decide what becomes of NaN, by a trial of their operators."""

from collections.abc import Mapping
from typing import Any

import pytest
import torch

from evaluator_svc.judge.reference.asked_of_missing import AskedOfMissing, Missing
from evaluator_svc.judge.reference.operators import OperatorMode, operator_name
from tests.judge.judge_tasks import prepare, task_of

_ROWS = "torch.randn(rows, cols)"
_SHARES = "torch.rand(rows, cols) + 0.5"
_INFINITY = Missing.INFINITY


@pytest.mark.parametrize(
    ("result", "is_asked"),
    [
        ("torch.fmax(x0, x1)", True),
        ("torch.fmin(x0, x1[:1])", True),
        ("torch.where(x0.eq(x0), x0, 0.0)", True),
        ("torch.where(x0 != x0, x1, x0)", True),
        ("x0.masked_fill(x0.isnan(), 1.0)", True),
        ("torch.where(x1.isfinite(), x0, 0.0)", True),
        ("x0.exp().nan_to_num(2.0)", True),
        ("x0.nansum(-1)", True),
        ("x0.nanmean(0)", True),
        ("x0.nanmedian(-1).values", True),
        ("x0.clone().nan_to_num_()", True),
        ("torch.maximum(x0, x1)", False),
        ("x0.T @ x1", False),
        ("(x0.unsqueeze(1) * x1).mean(0)", False),
        ("x0.T.contiguous().view(-1)", False),
        ("nn.functional.linear(x0, x1)", False),
        ("sum(torch.where(x0[:, t] > 0, x0[:, t], 0.0) for t in range(cols))", False),
        ("sum(torch.where(x0[:, t].isnan(), 0.0, x0[:, t]) for t in range(cols))", True),
        ("torch.where(x0 > 0, x0, 0.0)", False),
        ("torch.where(x1 > 0, x0, 0.0)", False),
        ("torch.where(x1 > -1e4, x0, 0.0)", False),
        ("torch.where(x0 > torch.finfo(x0.dtype).min / 2, x0, 0.0)", False),
        ("torch.where(x0 < torch.inf, x0, 0.0)", True),
        ("torch.where(x0 == x1, x0, 0.0)", False),
        ("x0.sign() * x1", False),
        ("x0.clamp(-3.0, 3.0)", False),
        ("nn.functional.hardsigmoid(x0)", False),
        ("x0.topk(4, dim=-1).values", False),
        ("x0.sort(-1).values", False),
        ("x0.kthvalue(5, dim=-1).values", False),
        ("x0.amax(-1)", False),
        ("torch.where(x0 == x0.amax(-1, keepdim=True), x0, 0.0)", False),
        ("torch.histc(x0, 8, 0.0, 1.0)", False),
        ("x0[:, ::47].contiguous()", False),
        ("x0[0] * x1[-1]", False),
        ("x0.tril()", False),
        ("x0.copysign(x1)", False),
        ("torch.hypot(x0, x1).pow(0.0)", False),
        ("torch.bucketize(x0, torch.linspace(0.0, 1.0, 5)) * 0.5", False),
    ],
)
def test_an_operator_decides_or_does_not(result: str, *, is_asked: bool) -> None:
    drawn = prepare(task_of(result, _ROWS, _SHARES)).input_set(5)
    with AskedOfMissing(drawn.inputs) as asked:
        outputs = drawn.run()
    assert bool(asked.found) is is_asked
    assert all(map(torch.equal, outputs, drawn.run()))


@pytest.mark.parametrize(
    ("result", "found"),
    [
        ("torch.where(x0.isinf(), 0.0, x0) * x1", {(0, Missing.INFINITY)}),
        ("torch.where(x1.isnan(), 0.0, x0)", {(1, Missing.NAN)}),
        ("torch.where(x0.isnan() | x1.isinf(), 0.0, x0)", {(0, Missing.NAN), (1, _INFINITY)}),
        ("torch.where(x0.exp().isfinite(), x0, x1)", {(0, Missing.NAN), (0, _INFINITY)}),
        ("(x0 + x1).nansum(-1)", {(0, Missing.NAN), (1, Missing.NAN)}),
        ("x0.clone().mul_(x1).nansum(-1)", {(0, Missing.NAN), (1, Missing.NAN)}),
        ("torch.fmax(x0, x1)", {(0, Missing.NAN), (1, Missing.NAN)}),
        ("x0.clone().mul_(x1) + x1.nansum(-1, True)", {(1, Missing.NAN)}),
        ("torch.where(x1 > 1, x0, 0.0).nansum(-1)", {(0, Missing.NAN)}),
    ],
)
def test_what_is_decided_about_is_told_apart(result: str, found: set[tuple[int, Missing]]) -> None:
    drawn = prepare(task_of(result, _ROWS, _SHARES)).input_set(5)
    with AskedOfMissing(drawn.inputs) as asked:
        drawn.run()
    assert asked.found == found


def test_many_elements_are_tried_in_part() -> None:
    drawn = prepare(task_of("torch.fmax(x0, x1)", _ROWS, _SHARES, rows=4096)).input_set(5)
    with AskedOfMissing(drawn.inputs) as asked:
        drawn.run()
    assert asked.found


def test_a_large_matrix_of_weights_is_not_copied() -> None:
    rows, weight = "torch.randn(rows, 2048)", "torch.randn(2048, 4096)"
    drawn = prepare(task_of("(x0 @ x1).nansum(-1)", rows, weight, rows=8)).input_set(5)
    copied = list[int]()

    class Copies(OperatorMode):
        def run(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
            if operator_name(func) == "clone":
                copied.append(args[0].numel())
            return func(*args, **kwargs)

    with Copies(), AskedOfMissing(drawn.inputs) as asked:
        drawn.run()
    assert asked.found
    assert max(copied) < 2048 * 4096
