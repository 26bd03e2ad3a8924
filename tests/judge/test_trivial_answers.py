"""No trivial answer passes an example task, in any precision: a zero-filled output above all."""

import dataclasses
import itertools
from collections.abc import Iterator
from functools import partial

import pytest
import torch

from evaluator_svc.judge.admission.answer_check import ADMISSION_SEEDS, check_answers
from evaluator_svc.judge.admission.trivial_answers import DrawPair, try_answers
from evaluator_svc.judge.comparison.compare import matches
from evaluator_svc.judge.draws.expected_output import expect
from evaluator_svc.judge.inputs.prepared_workload import PreparedWorkload
from evaluator_svc.judge.memory.judge_memory import open_memory
from kernel_foundry.domain.task import Precision, Size, Task
from kernel_foundry.sdk.task_file import read_task
from tests.judge.judge_tasks import SCALED, make_task, prepare
from tests.judge.test_admission import EXAMPLES

MEMORY = open_memory("null:0")

_LARGEST_SIZE = 16
"""Sizes are cut to this: answers are as trivial on small outputs."""

_WITH_HELD_OUT = ("softmax", "residual_rmsnorm", "matmul_bias_relu")
"""Cut to these sizes, the other examples' workloads differ in nothing."""


def small_example(name: str, precision: Precision) -> Task:
    task = read_task(EXAMPLES / f"{name}.py")
    workloads = tuple(
        dataclasses.replace(
            workload,
            sizes=tuple(
                Size(name=s.name, value=min(s.value, 3 if s.name == "batch" else _LARGEST_SIZE))
                for s in workload.sizes
            ),
        )
        for workload in task.workloads
        if not workload.held_out or task.name in _WITH_HELD_OUT
    )
    return dataclasses.replace(task, workloads=workloads, precision=precision)


def draw_pairs(prepared: PreparedWorkload) -> Iterator[DrawPair]:
    """Yield a workload's outputs on two pairs of draws."""
    for first, second in itertools.pairwise(ADMISSION_SEEDS):
        yield DrawPair(
            prepared=prepared,
            draws=(partial(prepared.input_set, first), partial(prepared.input_set, second)),
            expect=partial(expect, is_scaled=True, memory=MEMORY),
        )


@pytest.mark.parametrize("precision", Precision)
@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.py")))
def test_no_trivial_answer_passes_an_example(name: str, precision: Precision) -> None:
    task = small_example(name, precision)
    prepared = [prepare(task, w) for w in task.workloads]
    answers = check_answers(task, prepared, MEMORY)

    assert (answers.refusals, answers.exact) == ([], [])
    tried = 0
    for item in prepared:
        for pair in draw_pairs(item):
            for expected in pair.expected:
                assert not matches(torch.zeros_like(expected.tensor), expected, answers.tolerance)
            for answer in try_answers(pair, answers.tolerance):
                assert not answer.passes, answer
                tried += 1
        item.close()
    assert tried >= 2 * 6


@pytest.mark.parametrize("precision", Precision)
def test_every_answer_of_the_battery_is_tried(precision: Precision) -> None:
    task = dataclasses.replace(make_task(SCALED), precision=precision)
    prepared = prepare(task)
    pair = next(draw_pairs(prepared))
    elsewhere = dataclasses.replace(
        pair, elsewhere=(torch.ones(5, 5).to(prepared.module.rounding),)
    )
    tolerance = check_answers(task, [prepared], MEMORY).tolerance

    names = {tried.name for tried in try_answers(elsewhere, tolerance)}

    assert names == {
        "an output of zeros",
        "an output of ones",
        "the mean of another output everywhere",
        "the answer to another draw",
        "the mean of each row",
        "the mean of each column",
        "the answer of another workload, cropped or tiled",
        "a copy of input 'x'",
        "input 'x', negated",
        "input 'x', transposed",
        "the first element of input 'x' everywhere",
        *(
            f"parameter {path!r}, {how}"
            for path in ("weight", "bias")
            for how in ("broadcast", "cropped or tiled")
        ),
        *(f"the first element of parameter {path!r} everywhere" for path in ("weight", "bias")),
    }
    prepared.close()
