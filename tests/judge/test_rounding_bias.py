"""Results of 16 bits that are cut lie half a unit beside those that are rounded."""

import pytest
import torch

from evaluator_svc.judge.comparison.output_errors import OutputLines
from evaluator_svc.judge.comparison.rounding_bias import rounding_bias


def _cut(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return values towards zero, as a kernel that takes their first bits has them."""
    rounded = values.to(dtype)
    is_beyond = rounded.double().abs() > values.double().abs()
    return torch.where(is_beyond, torch.nextafter(rounded, torch.zeros_like(rounded)), rounded)


def _lines(actual: torch.Tensor, exact: torch.Tensor) -> OutputLines:
    eager = exact.to(actual.dtype)
    return OutputLines(actual=actual, expected=eager, eager=eager, exact=exact.double())


@pytest.fixture
def exact() -> torch.Tensor:
    generator = torch.Generator().manual_seed(3)
    factors = torch.randn(2, 64, 64, generator=generator).bfloat16().float()
    return factors[0] * factors[1]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_what_is_cut_is_half_a_unit_too_small(exact: torch.Tensor, dtype: torch.dtype) -> None:
    assert rounding_bias(_lines(_cut(exact, dtype), exact), dtype) == pytest.approx(-0.5, abs=0.1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_what_is_rounded_is_not(exact: torch.Tensor, dtype: torch.dtype) -> None:
    assert abs(rounding_bias(_lines(exact.to(dtype), exact), dtype)) < 0.05
    # Nor what is rounded twice, on its way and at its end.
    twice = (exact.bfloat16().float() * 1.25).to(dtype)
    assert abs(rounding_bias(_lines(twice, 1.25 * exact), dtype)) < 0.05


def test_errors_of_several_units_and_few_elements_tell_nothing(exact: torch.Tensor) -> None:
    rough = (0.98 * exact).bfloat16()
    assert rounding_bias(_lines(rough, exact), torch.bfloat16) == 0.0
    few = exact[:8, :8]
    assert rounding_bias(_lines(_cut(few, torch.bfloat16), few), torch.bfloat16) == 0.0
