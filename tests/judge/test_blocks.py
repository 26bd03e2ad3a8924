"""Inputs on which iterations converge slowly, of references that repeat an operator."""

import torch

from evaluator_svc.judge.admission.value_ranges import find_value_ranges
from evaluator_svc.judge.unusual_values.distributions import with_distribution
from kernel_foundry.domain.admission import Distribution
from tests.judge.judge_tasks import SOFTMAX, TOLERANCE, make_task, prepare

BALANCED = """
def forward(self, x):
    for _ in range(20):
        x = x / x.sum(-1, keepdim=True)
        x = x / x.sum(-2, keepdim=True)
    return x
"""


def _balanced(x: torch.Tensor, rounds: int) -> torch.Tensor:
    for _ in range(rounds):
        x = x / x.sum(-1, keepdim=True)
        x = x / x.sum(-2, keepdim=True)
    return x


def test_rounds_that_are_left_out_show_on_what_looks_usual() -> None:
    task = make_task(BALANCED, rows=40, inputs="[torch.rand(rows, 32, 32) + 0.1]")
    prepared = prepare(task)
    (ranges,) = find_value_ranges([prepared], TOLERANCE, 101).values()
    (factor,) = (r.factor for r in ranges if r.distribution is Distribution.BLOCKS and r.is_binding)
    ordinary = prepared.input_set(5)
    (x,) = with_distribution(prepared, ordinary, Distribution.BLOCKS).inputs
    assert float((x.amax((-1, -2)) / x.mean((-1, -2))).max()) < 8
    allowed = factor * TOLERANCE.rtol
    exact = _balanced(x.double(), 20)
    for rounds, is_wrong in ((20, False), (12, True), (5, True)):
        error = (_balanced(x, rounds) - exact).abs().amax((-1, -2))
        assert bool((error > allowed).any()) is is_wrong
    # Ordinary draws tell nothing.
    error = _balanced(ordinary.inputs[0], 5) - _balanced(ordinary.inputs[0], 20)
    assert float(error.abs().max()) < TOLERANCE.rtol


def test_one_round_of_three_that_is_left_out_shows() -> None:
    body = BALANCED.replace("20", "3")
    prepared = prepare(make_task(body, rows=40, inputs="[torch.rand(rows, 64, 64) + 1.0]"))
    (ranges,) = find_value_ranges([prepared], TOLERANCE, 101).values()
    (factor,) = (r.factor for r in ranges if r.distribution is Distribution.BLOCKS and r.is_binding)
    (x,) = with_distribution(prepared, prepared.input_set(5), Distribution.BLOCKS).inputs
    assert float((x.amax((-1, -2)) / x.mean((-1, -2))).max()) < 3
    allowed = factor * TOLERANCE.rtol * _balanced(x, 3).amax((-1, -2))
    error = (_balanced(x, 2) - _balanced(x, 3)).abs().amax((-1, -2))
    assert float((error > allowed).float().mean()) > 0.2


def test_symmetric_matrices_stay_so() -> None:
    inputs = "[(lambda a: a + a.mT)(torch.rand(rows, 16, 16))]"
    prepared = prepare(make_task(BALANCED, inputs=inputs))
    ordinary = prepared.input_set(5)
    (x,) = with_distribution(prepared, ordinary, Distribution.BLOCKS).inputs
    assert not torch.equal(x, ordinary.inputs[0])
    assert torch.equal(x, x.mT)


def test_what_repeats_nothing_is_tried_on_none() -> None:
    """It would say no more than mixed magnitudes do."""
    (ranges,) = find_value_ranges([prepare(make_task(SOFTMAX))], TOLERANCE, 101).values()
    assert Distribution.BLOCKS not in {r.distribution for r in ranges}
