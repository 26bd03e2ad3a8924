"""Elements up to the ends of what a reference takes."""

import pytest
import torch

from evaluator_svc.judge.comparison.needed_factor import needed_factor
from evaluator_svc.judge.tensors.relative_errors import largest_error
from evaluator_svc.judge.unusual_values.distributions import with_distribution
from evaluator_svc.judge.unusual_values.domain_ends import domain_ends
from kernel_foundry.domain.admission import Distribution
from tests.judge.judge_tasks import TOLERANCE, prepare, task_of

_MIDDLE = "0.5 * torch.rand(rows, cols) - 0.25"


@pytest.mark.parametrize(
    ("result", "inputs", "ends"),
    [
        ("x0.asin()", _MIDDLE, [-1.0, 1.0]),
        ("x0.erfinv()", _MIDDLE, [-1.0, 1.0]),
        ("(2.0 * x0).atanh()", _MIDDLE, [-0.5, 0.5]),
        ("(1.0 - x0 * x0).sqrt()", _MIDDLE, [-1.0, 1.0]),
        ("x0.acosh()", "torch.rand(rows, cols) + 1.5", [1.0]),
        ("x0.log1p()", _MIDDLE, [-1.0]),
        ("x0.sqrt()", "torch.rand(rows, cols)", []),
        ("x0.asin()", "torch.rand(rows, cols) * 2.0 - 1.0", []),
        ("x0.cosh() - (x0 + 1.0).cosh()", "torch.randn(rows, cols)", []),
        ("x0.exp()", "torch.randn(rows, cols)", []),
        ("x0 / (1.0 - x0)", _MIDDLE, []),
        ("x0.asin().sum(-1)", _MIDDLE, []),
    ],
)
def test_ends_that_ordinary_values_do_not_reach_are_found(
    result: str, inputs: str, ends: list[float]
) -> None:
    found = prepare(task_of(result, inputs)).once(domain_ends)
    assert sorted(end for _, end in found.get(0, ())) == pytest.approx(ends, abs=1e-5)


def test_inputs_are_near_ends_together_if_the_reference_takes_that() -> None:
    def found(result: str) -> list[int]:
        return sorted(prepare(task_of(result, _MIDDLE, _MIDDLE)).once(domain_ends))

    assert found("x0.asin() + x1.acos()") == [0, 1]
    assert found("(1.0 - x0 * x0 - x1 * x1).sqrt()") == [0]


def test_a_series_for_the_middle_is_wrong_near_the_ends() -> None:
    prepared = prepare(task_of("x0.asin()", _MIDDLE))
    ordinary = prepared.input_set(5)
    changed = with_distribution(prepared, ordinary, Distribution.BOUNDS)
    (x,), (expected,) = changed.inputs, changed.expected()
    assert 0.2 < float((x.abs() > 0.25).float().mean()) < 0.3
    assert 0.999 < float(x.abs().max()) <= 1.0
    needed = needed_factor(changed, Distribution.BOUNDS, TOLERANCE)
    assert needed is not None
    allowed = needed.factor * TOLERANCE.rtol

    def series(x: torch.Tensor) -> torch.Tensor:
        term, result = x, x
        for n in range(1, 12):
            term = term * x * x * ((2 * n - 1) / (2 * n))
            result = result + term / (2 * n + 1)
        return result

    (middle,) = ordinary.inputs
    assert largest_error(series(middle), middle.asin()) < TOLERANCE.rtol
    assert largest_error(series(x), expected) > 4 * allowed
    assert largest_error(torch.atan2(x, (1.0 - x * x).sqrt()), expected) < allowed / 4
