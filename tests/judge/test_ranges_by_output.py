"""On unusual values each output is held to what the reference defines of it."""

import pytest
import torch

from evaluator_svc.judge import Judge
from evaluator_svc.judge.admission.value_ranges import find_value_ranges
from evaluator_svc.messages.comparison import RangeVerdict
from kernel_foundry.domain.admission import Distribution, ValueRange
from kernel_foundry.domain.check import CheckResult
from tests.judge.judge_tasks import TOLERANCE, RunnerSide, make_task, prepare

_SHARES_AND_CODES = make_task(
    """
def forward(self, x):
    return torch.softmax(x, -1), torch.round(16.0 * x).clamp(-128, 127).to(torch.int8)
"""
)
_MEAN_AND_PLACE = make_task("def forward(self, x):\n    return x.square().mean(-1), x.argmax(-1)")
_MEAN_AND_VOTE = make_task(
    "def forward(self, x):\n    return x.square().mean(-1), (x @ x.T).exp().argmax(-1)"
)
_SUM_AND_SHARES = make_task(
    "def forward(self, x):\n    return torch.exp(x).sum(), torch.softmax(x, -1)"
)


def _found(task) -> dict[Distribution, ValueRange]:
    prepared = prepare(task)
    (ranges,) = find_value_ranges([prepared], TOLERANCE, 101).values()
    return {value_range.distribution: value_range for value_range in ranges}


@pytest.mark.parametrize(
    ("task", "distribution", "left_out"),
    [
        pytest.param(_SHARES_AND_CODES, Distribution.LARGE, (1,), id="codes that rounding decides"),
        pytest.param(_SUM_AND_SHARES, Distribution.LARGE, (0,), id="a sum that overflows"),
        pytest.param(_MEAN_AND_VOTE, Distribution.ZEROS, (1,), id="a place that rounding decides"),
        pytest.param(_MEAN_AND_PLACE, Distribution.SPARSE, (), id="a place among equal values"),
        pytest.param(_MEAN_AND_PLACE, Distribution.LARGE, (), id="a place that nothing moves"),
    ],
)
def test_an_output_that_is_not_defined_leaves_the_others_bound(
    task, distribution: Distribution, left_out: tuple[int, ...]
) -> None:
    value_range = _found(task)[distribution]
    assert value_range.is_binding
    assert value_range.left_out == left_out


def test_what_is_looked_up_at_one_of_equal_places_binds_nobody() -> None:
    task = make_task(
        "def forward(self, x, y):\n    i = x.argmax(-1)\n    return y[i].sum(-1), i",
        inputs="[torch.rand(rows, rows), torch.randn(rows, cols)]",
    )
    assert _found(task)[Distribution.ZEROS].left_out == (0,)


def _codes(x: torch.Tensor) -> torch.Tensor:
    return torch.round(16.0 * x).clamp(-128, 127).to(torch.int8)


def _verdict(judge: Judge, softmax, codes) -> RangeVerdict:
    # As of an evaluation on other values than those of admission: codes are held at first.
    ranges = (ValueRange(distribution=Distribution.LARGE, factor=16.0, is_binding=True),)
    name = _SHARES_AND_CODES.workloads[0].name
    drawn, descriptors = judge.draw(
        _SHARES_AND_CODES, name, TOLERANCE, (11,), (ranges[0].distribution,)
    )
    try:
        side = RunnerSide(judge, drawn, descriptors)
        side.run(softmax, "x", output="out0")
        side.run(codes, "x", output="out1")
        (verdict,) = judge.verify_ranges(drawn.draw, ranges).verdicts
    finally:
        judge.release(drawn.draw)
    return verdict


def test_floats_are_held_where_rounding_decides_the_codes_beside_them(judge: Judge) -> None:
    def other_codes(x: torch.Tensor) -> torch.Tensor:
        codes = _codes(x)
        codes[0, 0] += 1
        return codes

    def no_maximum(x: torch.Tensor) -> torch.Tensor:
        return x.exp() / x.exp().sum(-1, keepdim=True)

    def softmax(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, -1)

    right = _verdict(judge, softmax, other_codes)
    assert right.check.result is CheckResult.PASSED
    assert _verdict(judge, no_maximum, other_codes).is_wrong
    assert _verdict(judge, no_maximum, _codes).is_wrong
