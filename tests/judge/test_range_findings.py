"""A finding on unusual inputs follows from the mismatch, and names the first wrong element."""

from collections.abc import Callable

import pytest
import torch

from evaluator_svc.judge import Judge
from kernel_foundry.domain.admission import Distribution, ValueRange
from kernel_foundry.domain.finding import Finding
from kernel_foundry.domain.task import Task
from tests.judge.judge_tasks import TOLERANCE, RunnerSide, make_task

_CLAMP = make_task("def forward(self, x):\n    return x.clamp(0, 6)")
_COSINE = make_task("def forward(self, x):\n    return torch.cos(x) + x")


def _finding(
    judge: Judge,
    distribution: Distribution,
    kernel: Callable[[torch.Tensor], torch.Tensor],
    task: Task = _COSINE,
) -> Finding:
    is_binding = distribution is not Distribution.NON_FINITE
    ranges = (ValueRange(distribution=distribution, factor=4.0, is_binding=is_binding),)
    name = task.workloads[0].name
    drawn, descriptors = judge.draw(task, name, TOLERANCE, (11,), (distribution,))
    try:
        RunnerSide(judge, drawn, descriptors).run(kernel, "x")
        (verdict,) = judge.verify_ranges(drawn.draw, ranges).verdicts
    finally:
        judge.release(drawn.draw)
    (finding,) = verdict.findings
    return finding


def _without_nan(x: torch.Tensor) -> torch.Tensor:
    return x.nan_to_num(nan=0.0).clamp(0, 6)


def _rounded(x: torch.Tensor) -> torch.Tensor:
    return x.bfloat16().float().clamp(0, 6)


def test_a_nan_that_a_clamp_swallows_is_let_through(judge: Judge) -> None:
    found = _finding(judge, Distribution.NON_FINITE, _without_nan, _CLAMP)

    assert "let them through" in found.hint
    assert "nan was expected, 0 came" in found.message


@pytest.mark.parametrize(
    ("kernel", "hint"),
    [
        (lambda x: torch.cos(x) / (x / x), "Guard divisions"),
        (lambda x: torch.cos(x) * 1.001, "they lack bits"),
        (torch.sin, "parameters and constants alone"),
    ],
    ids=["no number", "close", "far off"],
)
def test_on_zeros_the_hint_follows_from_the_mismatch(
    judge: Judge, kernel: Callable[[torch.Tensor], torch.Tensor], hint: str
) -> None:
    assert hint in _finding(judge, Distribution.ZEROS, kernel).hint


def test_numbers_that_lack_bits_beside_nan_are_no_matter_of_nan(judge: Judge) -> None:
    assert "they lack bits" in _finding(judge, Distribution.NON_FINITE, _rounded, _CLAMP).hint


def test_the_first_wrong_element_is_named_with_both_values(judge: Judge) -> None:
    def with_one_wrong(x: torch.Tensor) -> torch.Tensor:
        result = torch.cos(x) + x
        result[2, 1:] += 1.0
        return result

    message = _finding(judge, Distribution.ZEROS, with_one_wrong).message

    assert "the first is out[2, 1]: 1 was expected, 2 came (0.0004 off is allowed)" in message


def test_a_wrong_answer_of_eight_bits_is_a_finding_too(judge: Judge) -> None:
    task = make_task(
        "def forward(self, x):\n    return x.float() + 1",
        inputs="[torch.randn(rows, cols).to(torch.float8_e4m3fn)]",
    )
    found = _finding(judge, Distribution.ZEROS, lambda x: x.float() + 2, task)
    assert "which are up to" not in found.message
    found = _finding(judge, Distribution.NON_FINITE, lambda x: x.float() * 2, task)
    assert "which are up to" in found.message
