"""Softmaxes, and what stands beside them, on rows and columns of large values."""

import pytest
import torch

from evaluator_svc.judge.admission.value_ranges import find_value_ranges
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.tensors.rounding_noise import RoundingNoise, moved_by_units
from evaluator_svc.judge.unusual_values.distributions import with_distribution
from kernel_foundry.domain.admission import Distribution, ValueRange
from kernel_foundry.domain.task import Tolerance
from tests.judge.judge_tasks import TOLERANCE, prepare, task_of

_FLOATS = "torch.randn(rows, cols)"
_HALVES = f"{_FLOATS}.half()"
_IMAGES = "torch.randn(16, rows, cols)"
_HALF_TOLERANCE = Tolerance(rtol=2e-3, atol=2e-3)
_LOG2_E = 1.4426950408889634


def _drawn(
    result: str,
    *inputs: str,
    distribution: Distribution = Distribution.FAR,
    tolerance: Tolerance = TOLERANCE,
) -> tuple[InputSet, ValueRange]:
    """Return a draw, and how candidates are held to it."""
    prepared = prepare(task_of(result, *inputs))
    (ranges,) = find_value_ranges([prepared], tolerance, 101).values()
    (found,) = (r for r in ranges if r.distribution is distribution)
    assert found.is_binding
    return with_distribution(prepared, prepared.input_set(5), distribution), found


def _from(start: float, x: torch.Tensor, axis: int) -> torch.Tensor:
    """Return shares by a maximum that begins at a number."""
    power = (x - x.amax(axis, keepdim=True).clamp(min=start)).exp()
    return power / power.sum(axis, keepdim=True)


@pytest.mark.parametrize(
    ("result", "drawn", "axis", "distribution"),
    [
        ("torch.softmax(x0, -1)", _FLOATS, -1, Distribution.FAR),
        ("torch.softmax(x0, -1)", _HALVES, -1, Distribution.FAR),
        ("torch.softmax(0.7 * x0, -1)", _FLOATS, -1, Distribution.FAR),
        ("torch.softmax(x0, 0)", _FLOATS, 0, Distribution.COLUMNS),
        ("torch.softmax(x0, 1)", _IMAGES, 1, Distribution.COLUMNS),
    ],
)
def test_shares_of_far_rows_are_held_to_what_no_rounding_decides(
    result: str, drawn: str, axis: int, distribution: Distribution
) -> None:
    tolerance = _HALF_TOLERANCE if drawn is _HALVES else TOLERANCE
    changed, found = _drawn(result, drawn, distribution=distribution, tolerance=tolerance)
    assert found.left_out == ()
    assert found.factor < 8.0
    (x,), (expected,) = changed.inputs, changed.expected()
    begun = _from(-100.0 if drawn is _HALVES else -1000.0, x.float(), axis)
    assert bool(expected.isfinite().all())
    assert int(begun.isnan().any(axis).count_nonzero()) >= 3


@pytest.mark.parametrize("scale", [1.0, 0.7])
def test_honest_softmaxes_of_far_rows_are_right(scale: float) -> None:
    """Also where each element is scaled, and rounded, before the largest is subtracted."""
    changed, found = _drawn(f"torch.softmax({scale} * x0, -1)", _FLOATS)
    (x,), (expected,) = changed.inputs, changed.expected()
    scaled = x * (scale * _LOG2_E)
    powers = (scaled - scaled.amax(-1, keepdim=True)).exp2()
    best, total = torch.full((len(x), 1), -torch.inf), torch.zeros(len(x), 1)
    for column in torch.split(scale * x, 1, dim=-1):  # one element after the other
        larger = torch.maximum(best, column)
        is_none = larger == -torch.inf
        kept = torch.where(is_none, 0.0, (best - larger).exp())
        total = total * kept + torch.where(is_none, 0.0, (column - larger).exp())
        best = larger
    for shares in (powers / powers.sum(-1, keepdim=True), (scale * x - best).exp() / total):
        torch.testing.assert_close(shares, expected, rtol=found.factor * TOLERANCE.rtol, atol=1e-7)


@pytest.mark.parametrize(
    ("other", "left_out"),
    [("torch.softmax(x0, -1)", ()), ("x0.exp().sum(-1)", ()), ("x0.sin()", (1,))],
)
def test_what_rounding_decides_or_overflows_excuses_no_other_output(
    other: str, left_out: tuple[int, ...]
) -> None:
    changed, found = _drawn(f"(x0.amax(-1), {other})", _FLOATS)
    assert found.left_out == left_out
    assert bool((changed.expected()[0] < -12000).any())


def test_rows_with_infinity_stay_where_they_tell_of_more_outputs() -> None:
    """Among equal values places are open, and with them what is looked up there."""
    changed, found = _drawn("(x0.amax(-1), x0.argmax(-1), torch.softmax(x0, -1))", _FLOATS)
    assert 2 not in found.left_out
    assert bool((changed.inputs[0] == -torch.inf).any())


def test_equal_values_are_rounded_alike() -> None:
    x, device = torch.randn(64).repeat(3), torch.device("cpu")
    with RoundingNoise(seed=1, device=device, units=64.0, equals_alike=True):
        noisy = x * 3.0
    moved = moved_by_units(x, generator=torch.Generator().manual_seed(1), equals_alike=True)
    for changed, plain in ((noisy, x * 3.0), (moved, x)):
        ones = changed.reshape(3, 64)
        assert torch.equal(ones, ones[:1].expand(3, 64))
        is_larger = ones[0].abs() > plain[:64].abs()
        assert 16 <= int(is_larger.count_nonzero()) <= 48
