"""A task's own check of outputs: its words are the verdict's, and admission tries it first."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from evaluator_svc.judge import Judge
from kernel_foundry.domain.check import CheckKind, CheckResult
from kernel_foundry.domain.task import Task
from tests.judge.judge_tasks import EACH_MEMORY, EACH_MEMORY_AND_SIZE, PEAKS, RunnerSide, make_task

_PLAIN = make_task(
    "def forward(self, x, n):\n    return n * x\n", inputs="[torch.rand(rows, cols), 2]"
)


def task_with(check: str, name: str = "looked_at") -> Task:
    text = f"{_PLAIN.reference}\n\ndef looked_at(inputs, expected, actual):\n    {check}\n"
    return replace(_PLAIN, reference=text, check=name)


_ABOVE = (
    "x, n = inputs\n"
    "    assert (n, actual[0].shape) == (2, x.shape)\n"
    "    expected[0].zero_()\n"
    "    return bool((actual[0] >= 2 * x).all()) or 'below'"
)


@pytest.mark.parametrize("judge", EACH_MEMORY_AND_SIZE, indirect=True)
def test_its_words_are_the_verdicts(judge: Judge, drawn: Callable[..., RunnerSide]) -> None:
    """On outputs within the tolerance; what the check writes to is its own."""
    for change, said in ((1 + 2e-6, ""), (1 - 2e-6, "below")):
        runner = drawn(task_with(_ABOVE))
        runner.run(lambda x, change=change: 2 * x * change, "x")
        verdict = judge.verify(runner.draw.draw)
        assert verdict.is_wrong == bool(said)
        (check,) = [c for c in verdict.checks if c.kind is CheckKind.TASK_CHECK]
        assert check.result is (CheckResult.FAILED if said else CheckResult.PASSED)
        assert [said in finding.message for finding in verdict.findings] == [True] * bool(said)


@pytest.mark.parametrize("judge", EACH_MEMORY, indirect=True)
def test_what_it_raises_on_outputs_is_their_fault(
    judge: Judge, drawn: Callable[..., RunnerSide]
) -> None:
    runner = drawn(task_with("assert (actual[0] >= expected[0]).all(), 'less'"))
    runner.run(lambda x: 2 * x * (1 - 2e-6), "x")
    verdict = judge.verify(runner.draw.draw)
    assert verdict.is_wrong
    assert "AssertionError: less" in verdict.findings[0].message


@pytest.mark.parametrize("judge", EACH_MEMORY, indirect=True)
@pytest.mark.parametrize("check", ["return 'never right'", "return 1 / 0"])
def test_what_it_says_of_the_references_outputs_is_no_fault_of_others(
    judge: Judge, drawn: Callable[..., RunnerSide], check: str
) -> None:
    """Admission tried it on other draws."""
    runner = drawn(task_with(check))
    runner.run(lambda x: 2 * x, "x")
    verdict = judge.verify(runner.draw.draw)
    assert not verdict.is_wrong
    (made,) = [c for c in verdict.checks if c.kind is CheckKind.TASK_CHECK]
    assert made.result is CheckResult.SKIPPED
    assert "the reference's own outputs" in made.note


@pytest.mark.parametrize("judge", EACH_MEMORY, indirect=True)
@pytest.mark.parametrize(
    ("check", "name", "refusal"),
    [
        ("return True", "looked_at", ""),
        ("return 'never right'", "looked_at", "never right"),
        ("return 1 / 0", "looked_at", "ZeroDivisionError"),
        ("return 3", "looked_at", "gives a int"),
        ("return None", "absent", "no function absent"),
    ],
)
def test_admission_tries_it_on_the_references_outputs(
    judge: Judge, check: str, name: str, refusal: str
) -> None:
    admission = judge.admit(task_with(check, name), PEAKS)
    assert [refusal in said for said in admission.refusals] == [True] * bool(refusal)
