"""Codes that rounding decides may differ by one, few of them; all other whole numbers may not."""

from collections.abc import Callable

import pytest
import torch

from evaluator_svc.judge import Judge
from evaluator_svc.judge.comparison.rounded_codes import allowed_codes
from evaluator_svc.judge.inputs.prepared_workload import CodeShare
from kernel_foundry.domain.check import CheckKind, CheckResult
from tests.judge.judge_tasks import RunnerSide, make_task, prepare

Drawn = Callable[..., RunnerSide]

CODES = make_task(
    """
def forward(self, x):
    scale = x.abs().amax(-1, keepdim=True) / 127.0
    return torch.round(x / scale).to(torch.int8)
""",
    rows=256,
    cols=1024,
)
PLACES = make_task("def forward(self, x):\n    return x.argmax(-1)", rows=2048, cols=64)
LEVELS = make_task(
    """
def forward(self, x):
    low, high = x.amin(-1, keepdim=True), x.amax(-1, keepdim=True)
    return ((x - low) / (high - low) * 255).to(torch.uint8)
""",
    rows=256,
    cols=257,
)
WHOLE = make_task("def forward(self, x):\n    return (64 * x).round().mul(1.0).long()", cols=4096)
FLOORS = make_task("def forward(self, x):\n    return torch.floor(1e6 * x).long()", cols=4096)


def test_few_codes_may_differ_and_none_that_is_compared() -> None:
    codes = prepare(CODES)
    elements = 256 * 1024
    assert 1 <= allowed_codes(codes, 0, elements) <= 100
    assert allowed_codes(codes, 0, 512) == 0  # as few of few as of many
    assert allowed_codes(prepare(PLACES), 0, 2048) == 0


def test_never_more_than_one_in_1024_whatever_rounding_decides() -> None:
    prepared = prepare(FLOORS)
    prepared.code_shares = (CodeShare(by_rounding=0.5),)
    assert allowed_codes(prepared, 0, 1 << 20) == 1 << 10


def test_one_on_a_border_in_each_row_may_differ_and_not_all_where_all_lie_on_borders() -> None:
    """The largest element of a row is cut at exactly 255, or just below."""
    elements = 256 * 257
    assert 256 <= allowed_codes(prepare(LEVELS), 0, elements) <= 500
    whole = prepare(WHOLE)
    assert allowed_codes(whole, 0, elements) <= elements >> 10


def _codes(x: torch.Tensor) -> torch.Tensor:
    return torch.round(x / (x.abs().amax(-1, keepdim=True) / 127.0)).to(torch.int8)


def _off(count: int, step: int) -> Callable[[torch.Tensor], torch.Tensor]:
    def kernel(x: torch.Tensor) -> torch.Tensor:
        codes = _codes(x)
        codes[:count, 7] -= step * codes[:count, 7].sign() + (codes[:count, 7] == 0).to(torch.int8)
        return codes

    return kernel


def _by_reciprocal(x: torch.Tensor) -> torch.Tensor:
    return torch.round(x * (127.0 / x.abs().amax(-1, keepdim=True))).to(torch.int8)


@pytest.mark.parametrize(
    ("kernel", "is_wrong"),
    [
        pytest.param(_codes, False, id="as the reference does"),
        pytest.param(_by_reciprocal, False, id="by a reciprocal"),
        pytest.param(_off(1, 1), False, id="one off by one"),
        pytest.param(_off(1, 2), True, id="one off by two"),
        pytest.param(_off(200, 1), True, id="many off by one"),
        pytest.param(lambda x: _codes(x.half().float()), True, id="from 16 bits"),
    ],
)
def test_a_verdict_lets_neighbours_pass_and_nothing_else(
    judge: Judge, drawn: Drawn, kernel: Callable[[torch.Tensor], torch.Tensor], *, is_wrong: bool
) -> None:
    runner = drawn(CODES)
    runner.run(kernel, "x")
    verdict = judge.verify(runner.draw.draw)
    assert verdict.is_wrong == is_wrong
    (check,) = (c for c in verdict.checks if c.kind is CheckKind.COMPARISON)
    assert check.result is (CheckResult.FAILED if is_wrong else CheckResult.PASSED)


def test_the_place_of_a_largest_value_is_exact(judge: Judge, drawn: Drawn) -> None:
    def beside(x: torch.Tensor) -> torch.Tensor:
        places = x.argmax(-1)
        places[0] = (places[0] + 1) % 64
        return places

    runner = drawn(PLACES)
    runner.run(beside, "x")
    assert judge.verify(runner.draw.draw).is_wrong
