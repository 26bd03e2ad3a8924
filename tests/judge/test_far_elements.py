"""Elements that are far from the reference by their own size, and when that is no excuse."""

from collections.abc import Callable

import pytest
import torch

from evaluator_svc.judge import Judge
from evaluator_svc.pipeline.correctness.element_errors import assess_elements
from kernel_foundry.domain.check import CheckResult
from kernel_foundry.domain.task import Task
from tests.judge.judge_tasks import RunnerSide, make_task

Drawn = Callable[..., RunnerSide]

SHARP = make_task("def forward(self, x):\n    return torch.softmax(4 * x, -1)", rows=33, cols=700)
PRODUCT = make_task(
    "def forward(self, a, b):\n    return a @ b",
    inputs="[torch.randn(rows, cols), torch.randn(cols, rows)]",
    rows=200,
    cols=300,
)


def _sharp(change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[..., torch.Tensor]:
    def kernel(x: torch.Tensor) -> torch.Tensor:
        right = torch.softmax(4 * x, -1)
        small = right < 1e-6 * right.amax(-1, keepdim=True)
        return torch.where(small, change(right), right)

    return kernel


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(torch.zeros_like, "are zero", id="zeros"),
        pytest.param(lambda y: torch.full_like(y, 1e-9), "one repeated value", id="repeated"),
        pytest.param(lambda y: 1.3 * y, "1/64 of their own size", id="rough"),
        pytest.param(lambda y: 1.03 * y, "1/64 of their own size", id="a few bits"),
    ],
)
def test_what_is_small_beside_its_row_counts(
    judge: Judge, drawn: Drawn, change: Callable[[torch.Tensor], torch.Tensor], words: str
) -> None:
    runner = drawn(SHARP)
    runner.run(_sharp(change), "x")
    assert not judge.verify(runner.draw.draw).is_wrong, "the tolerance sees nothing of it"
    check, failure = assess_elements(judge.audit_precision(runner.draw.draw), "w")
    assert check.result is CheckResult.FAILED
    assert failure is not None
    assert words in failure.findings[0].message


@pytest.mark.parametrize("task", [SHARP, PRODUCT], ids=["softmax", "product"])
def test_honest_results_have_no_far_elements(judge: Judge, drawn: Drawn, task: Task) -> None:
    runner = drawn(task)
    if task is SHARP:
        runner.run(lambda x: (4 * x).exp() / (4 * x).exp().sum(-1, keepdim=True), "x")
    else:
        runner.run(lambda a, b: (a.double() @ b.double()).float(), "a", "b")
    check, failure = assess_elements(judge.audit_precision(runner.draw.draw), "w")
    assert (check.result, failure) == (CheckResult.PASSED, None)


def test_sums_that_cancel_excuse_far_elements(judge: Judge, drawn: Drawn) -> None:
    """Where the reference itself is off by more, a kernel that is not has done nothing wrong."""
    task = make_task("def forward(self, x):\n    return (x + 1e6) - 1e6", rows=33, cols=70)
    runner = drawn(task)
    runner.run(lambda x: x, "x")
    audited = judge.audit_precision(runner.draw.draw)
    assert audited.far is not None, "many elements are off by more than an eighth"
    _, failure = assess_elements(audited, "w")
    assert failure is None
