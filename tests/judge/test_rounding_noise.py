"""Rounding errors of the reference, and honest formulas that are off by no more."""

import pytest
import torch
from torch.nn import functional as F  # noqa: N812  torch's own name for it

from evaluator_svc.judge.comparison.needed_factor import _Distances, needed_factor
from evaluator_svc.judge.tensors.rounding_noise import RoundingNoise
from kernel_foundry.domain.admission import Distribution
from kernel_foundry.domain.task import Tolerance
from tests.judge.judge_tasks import make_task, prepare

_NUMERATOR = (
    -2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
    -7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02,
)  # fmt: skip
_DENOMINATOR = (
    -1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03,
    -1.42647390514189e-02,
)  # fmt: skip


def _polynomial(coefficients: tuple[float, ...], x: torch.Tensor) -> torch.Tensor:
    result = torch.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        result = result * x + coefficient
    return result


def _gelu(x: torch.Tensor) -> torch.Tensor:
    """By a quotient of polynomials for the error function, off by 4 units in its last place."""
    at = (x * 0.7071067811865476).clamp(-4.0, 4.0)
    square = at * at
    erf = at * _polynomial(_NUMERATOR, square) / _polynomial(_DENOMINATOR, square)
    return 0.5 * x * (1.0 + erf)


@pytest.mark.parametrize(
    ("dtype", "most"), [(torch.float32, 2.5e-7), (torch.bfloat16, 1e-6), (torch.float64, 1e-15)]
)
def test_a_gelu_far_below_zero_is_a_rounding_error_of_one(dtype: torch.dtype, most: float) -> None:
    x = torch.full((512,), -4.0, dtype=dtype)
    plain = F.gelu(x)
    with RoundingNoise(seed=1, device=x.device):
        moved = F.gelu(x)
    error = float((moved.double() - plain.double()).abs().max())
    assert most / 32 < error < most


@pytest.mark.parametrize(("offset", "is_checked"), [(2.5, True), (3.0, True), (3.6, False)])
def test_a_usual_formula_of_gelu_is_right_on_rows_below_zero(
    offset: float, is_checked: bool
) -> None:
    """The norm enlarges rows that all but vanish: the lower, the more of them is rounding."""
    normed = "torch.nn.functional.layer_norm(torch.nn.functional.gelu(x), x.shape[-1:])"
    prepared = prepare(make_task(f"\ndef forward(self, x):\n    return {normed}\n", cols=1001))
    tolerance = Tolerance(rtol=1e-5, atol=1e-5)
    for seed in range(6):
        generator = torch.Generator().manual_seed(seed)
        x = -(offset + 1.5 * torch.rand(3, 1001, generator=generator))
        changed = prepared.input_set(seed).with_inputs([x])
        needed = needed_factor(changed, Distribution.NEGATIVE, tolerance)
        assert (needed is not None) is is_checked
        if needed is not None:
            distances = _Distances(changed, changed.expected(), tolerance)
            (distance,) = distances.of([F.layer_norm(_gelu(x), x.shape[-1:])], safety=1.0)
            assert distance < needed.factor / 3  # twice as far was nearly too far
