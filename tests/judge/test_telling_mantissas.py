"""Mantissas that tell of rounding: how far values move, and what stays as it is."""

import pytest
import torch

from evaluator_svc.judge.inputs.telling_mantissas import with_telling_mantissas


@pytest.mark.parametrize("seed", range(4))
def test_telling_mantissas_keep_order_sign_and_what_float16_holds(seed: int) -> None:
    x = torch.cat((torch.randn(10_000), torch.tensor([0.0, -0.0, 1.0, -3.0, torch.inf])))
    told = with_telling_mantissas(x, seed)
    order = x.argsort()

    assert bool((told[order].diff() >= 0)[:-1].all())
    assert torch.equal(told[-5:], x[-5:])
    assert float(((told - x) / x)[:-5].abs().max()) < 2**-10
    rounded = told[:-5].half().float().abs() - told[:-5].abs()
    share_down = float((rounded <= 0).float().mean())
    assert share_down > 0.99 or share_down < 0.01
    whole = torch.arange(10)
    assert with_telling_mantissas(whole, seed) is whole


@pytest.mark.parametrize("is_distinct", [False, True])
def test_telling_mantissas_of_float64_end_in_a_band_of_float32(*, is_distinct: bool) -> None:
    x = torch.cat((torch.randn(10_000), torch.tensor([0.0, 1.0, -3.0, torch.inf]))).double()
    x[:10_000] += 1e-9 * torch.randn(10_000, dtype=torch.float64)
    for seed in range(4):
        told = with_telling_mantissas(x, seed, is_distinct=is_distinct)
        assert torch.equal(told[-4:], x[-4:])
        assert float(((told - x) / x)[:-4].abs().max()) < 2**-22
        moved = (told[:-4].float().double().abs() - told[:-4].abs()) / told[:-4].abs()
        assert abs(float(moved.mean())) > 0.9 * float(moved.abs().mean()) > 2**-29


@pytest.mark.parametrize("numbers", [(0, 1), (0, 2), (1, 2), (0, 1, 2)])
def test_biases_of_factors_never_cancel(numbers: tuple[int, ...]) -> None:
    """Whichever way each of them is rounded, the product is off in the mean."""
    for seed in range(8):
        torch.manual_seed(seed)
        factors = [
            with_telling_mantissas(torch.randn(100_000), seed + 11 * n, number=n) for n in numbers
        ]
        exact = torch.stack([x.double() for x in factors]).prod(0)
        rounded = torch.stack([x.half().double() for x in factors]).prod(0)
        assert abs(float((rounded / exact - 1).mean())) > 2**-16
