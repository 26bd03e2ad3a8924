"""Tolerances that only a share of the elements has to keep."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from evaluator_svc.judge import Judge
from evaluator_svc.judge.admission.answer_check import check_answers
from evaluator_svc.judge.comparison.compare import allowed_mismatches
from evaluator_svc.judge.memory.judge_memory import open_memory
from kernel_foundry.domain.task import Tolerance
from tests.judge.judge_tasks import (
    EACH_MEMORY,
    EACH_MEMORY_AND_SIZE,
    RunnerSide,
    make_task,
    prepare,
)

MOST_MAY_DIFFER = Tolerance(rtol=1e-5, atol=1e-5, matched=0.99)
TASK = make_task(
    "def forward(self, x):\n    return 2 * x\n", rows=40, cols=50, tolerance=MOST_MAY_DIFFER
)
"""2,000 elements: 20 of them may differ."""


def wrong_in(count: int, value: float = 7.0) -> Callable[[torch.Tensor], torch.Tensor]:
    def kernel(x: torch.Tensor) -> torch.Tensor:
        out = 2 * x
        out.view(-1)[:count] = value
        return out

    return kernel


@pytest.mark.parametrize("judge", EACH_MEMORY_AND_SIZE, indirect=True)
@pytest.mark.parametrize(
    ("count", "value", "is_right"),
    [(0, 7.0, True), (20, 7.0, True), (21, 7.0, False), (1, float("nan"), False)],
)
def test_so_many_elements_may_differ_and_none_be_no_number(
    judge: Judge,
    drawn: Callable[..., RunnerSide],
    count: int,
    value: float,
    is_right: bool,
) -> None:
    runner = drawn(TASK)
    runner.run(wrong_in(count, value), "x")
    verdict = judge.verify(runner.draw.draw)
    assert (not verdict.is_wrong and not verdict.is_nondeterministic) == is_right
    differing = {f.name: f.value for f in verdict.checks[0].figures}["differing_elements"]
    assert differing >= count


@pytest.mark.parametrize("judge", EACH_MEMORY, indirect=True)
def test_what_was_stored_is_stale_however_few_elements_changed(
    judge: Judge, drawn: Callable[..., RunnerSide]
) -> None:
    runner = drawn(TASK)
    runner.run(wrong_in(0), "x")
    assert not judge.verify(runner.draw.draw).is_wrong
    before = [runner.tensor("out", seed=seed).clone() for seed in range(3)]
    seeds = judge.change_inputs(runner.draw.draw, with_parameters=True).seeds
    for seed in seeds:
        runner.tensor("out", seed=seed).copy_(before[seed])
    verdict = judge.verify_changed(runner.draw.draw, seeds)
    assert verdict.is_stale
    assert verdict.is_wrong


def test_trivial_answers_are_held_to_the_same_share() -> None:
    """An output of which 98 in a hundred are zeros."""
    task = make_task("def forward(self, x):\n    return x * (x > 2)\n", rows=64, cols=64)
    refused = {}
    for matched in (1.0, 0.9):
        judged = replace(task, tolerance=Tolerance(rtol=1e-4, atol=1e-4, matched=matched))
        prepared = prepare(judged)
        refused[matched] = check_answers(judged, [prepared], open_memory("null:0")).refusals
    assert refused[1.0] == []
    assert "zeros" in refused[0.9][0]


def test_whole_numbers_have_all_to_be_right_in_trivial_answers() -> None:
    """As in those of candidates."""
    task = make_task(
        "def forward(self, x):\n    return (x > 2).long()\n",
        rows=64,
        cols=64,
        tolerance=Tolerance(rtol=1e-4, atol=1e-4, matched=0.9),
    )
    prepared = prepare(task)
    assert check_answers(task, [prepared], open_memory("null:0")).refusals == []


def test_a_tenth_of_the_elements_is_a_tenth() -> None:
    """1.0 - 0.9 is less than 0.1."""
    assert [allowed_mismatches(count, 0.9, 1.0) for count in (9, 10, 999, 1000)] == [0, 1, 99, 100]
    assert allowed_mismatches(1000, 0.9, float("nan")) == 0
