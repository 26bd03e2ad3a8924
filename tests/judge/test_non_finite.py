"""NaN and infinity bind where the reference asks for them and gives a number, and nowhere else."""

from collections.abc import Callable

import pytest
import torch

from evaluator_svc.judge import Judge
from evaluator_svc.messages.comparison import RangeVerdict
from kernel_foundry.domain.admission import Distribution, ValueRange
from kernel_foundry.domain.task import Task
from tests.judge.judge_tasks import TOLERANCE, RunnerSide, make_task

_MEAN = make_task("def forward(self, x):\n    return torch.nanmean(x, dim=-1)")
_SUM = make_task("def forward(self, x):\n    return torch.where(x.eq(x), x, 0.0).sum(-1)")
_FULLER = make_task(
    "def forward(self, x, y):\n    return torch.fmax(x, y)",
    inputs="[torch.randn(rows, cols), torch.randn(rows, cols)]",
)
_LARGEST = make_task("def forward(self, x):\n    return x.topk(4, dim=-1).values")


def _verdict(
    judge: Judge, task: Task, kernel: Callable[..., torch.Tensor], *inputs: str
) -> RangeVerdict:
    ranges = (ValueRange(distribution=Distribution.NON_FINITE, factor=4.0, is_binding=False),)
    name = task.workloads[0].name
    drawn, descriptors = judge.draw(task, name, TOLERANCE, (11,), (ranges[0].distribution,))
    try:
        RunnerSide(judge, drawn, descriptors).run(kernel, *inputs)
        (verdict,) = judge.verify_ranges(drawn.draw, ranges).verdicts
    finally:
        judge.release(drawn.draw)
    return verdict


def _of_numbers(x: torch.Tensor) -> torch.Tensor:
    is_number = ~x.isnan()
    return x.where(is_number, 0.0).sum(-1) / is_number.sum(-1)


def _infinity_left_out(x: torch.Tensor) -> torch.Tensor:
    return _of_numbers(x.where(x.isfinite(), float("nan")))


def _of_all(x: torch.Tensor) -> torch.Tensor:
    return x.mean(-1)


def _nan_for_zero(x: torch.Tensor) -> torch.Tensor:
    return x.nan_to_num(nan=0.0, posinf=float("inf")).mean(-1)


@pytest.mark.parametrize(
    ("kernel", "is_wrong"),
    [(_of_numbers, False), (_infinity_left_out, False), (_of_all, True), (_nan_for_zero, True)],
)
def test_numbers_bind_where_the_reference_leaves_nan_out(
    judge: Judge, kernel: Callable[[torch.Tensor], torch.Tensor], *, is_wrong: bool
) -> None:
    assert _verdict(judge, _MEAN, kernel, "x").is_wrong is is_wrong


@pytest.mark.parametrize(
    ("kernel", "is_wrong"),
    [(lambda x: x.nan_to_num(0.0, torch.inf).sum(-1), False), (lambda x: x.sum(-1), True)],
)
def test_numbers_bind_where_the_reference_compares_values_with_themselves(
    judge: Judge, kernel: Callable[[torch.Tensor], torch.Tensor], *, is_wrong: bool
) -> None:
    assert _verdict(judge, _SUM, kernel, "x").is_wrong is is_wrong


@pytest.mark.parametrize(
    ("kernel", "is_wrong"),
    [
        (lambda x, y: torch.where((x > y) | y.isnan(), x, y), False),
        (lambda x, y: torch.where(x > y, x, y), True),
        (lambda x, y: torch.where(x < y, y, x), True),
    ],
)
def test_numbers_bind_where_the_reference_takes_the_other_operand(
    judge: Judge, kernel: Callable[..., torch.Tensor], *, is_wrong: bool
) -> None:
    assert _verdict(judge, _FULLER, kernel, "x", "y").is_wrong is is_wrong


def test_nobody_is_held_to_what_nan_does_elsewhere(judge: Judge) -> None:
    """An honest maximum passes NaN over, and finds other numbers in the places behind it."""

    def passed_over(x: torch.Tensor) -> torch.Tensor:
        return x.nan_to_num(nan=-float("inf"), posinf=float("inf")).topk(4, dim=-1).values

    verdict = _verdict(judge, _LARGEST, passed_over, "x")
    assert not verdict.is_wrong
    assert verdict.findings
