"""Rows of few different numbers: held to the size of what was cut off, or cancelled."""

import torch

from evaluator_svc.judge.comparison.compare import matches
from evaluator_svc.judge.draws.expected_output import ExpectedOutput, expect
from evaluator_svc.judge.memory.host_memory import HostMemory
from kernel_foundry.domain.task import Tolerance

TOLERANCE = Tolerance(rtol=5e-5, atol=5e-5)
ROWS = 64


def _expected(elements: int, value: float) -> ExpectedOutput:
    """Rows of size 1; of the last one some elements are small, and the others are zero."""
    torch.manual_seed(0)
    output = torch.randn(ROWS, 49).relu()
    output[-1] = 0.0
    output[-1, :elements] = value
    return expect(output, is_scaled=True, memory=HostMemory())


def _matches(expected: ExpectedOutput, error: float) -> bool:
    actual = expected.tensor.clone()
    actual[-1, 0] += error
    return matches(actual, expected, TOLERANCE)


def test_what_is_left_of_a_row_is_as_exact_as_other_rows() -> None:
    for elements in (0, 1, 15):
        expected = _expected(elements, 1e-6)
        assert _matches(expected, 2e-7)
        assert not _matches(expected, 1e-4)


def test_a_row_of_many_small_elements_has_a_scale_of_its_own() -> None:
    expected = _expected(16, 1e-6)
    assert not _matches(expected, 2e-7)
    assert _matches(expected, 2e-11)


def _channels(cut: bool) -> torch.Tensor:
    """Channels of one number each, as biases alone give them; the terms of the first cancel."""
    torch.manual_seed(0)
    bias, weight = torch.rand(96), torch.randn(64, 96)
    weight[0] -= (weight[0] @ bias) * bias / bias.square().sum()
    if cut:
        weight *= 1 + 2.0**-17 * torch.randn(64, 96).sign()
    return (weight @ bias).view(1, 64, 1, 1).expand(2, 64, 9, 9).contiguous()


def test_channels_of_one_number_are_held_to_the_size_of_all_without_inputs() -> None:
    """17 bits of each term are 17 bits of a sum, and not of what a sum that cancels leaves."""
    expected = expect(_channels(cut=False), is_scaled=True, memory=HostMemory())
    assert not matches(_channels(cut=True), expected, TOLERANCE)
    assert matches(_channels(cut=True), expected.without_inputs(), TOLERANCE)
    assert not matches(torch.zeros(2, 64, 9, 9), expected.without_inputs(), TOLERANCE)


def test_channels_of_several_numbers_keep_their_scale_without_inputs() -> None:
    expected = _expected(49, 1e-6)
    expected.tensor[-1] *= torch.linspace(0.5, 1.5, 49)
    expected = expect(expected.tensor, is_scaled=True, memory=HostMemory())
    assert expected.without_inputs().scale is not None
    assert torch.equal(expected.scale, expected.without_inputs().scale)


def test_two_ways_to_compute_a_norm_with_relu_agree_in_every_draw() -> None:
    """One channel in some is below zero almost everywhere: what is left of it may be tiny."""
    for seed in range(8):
        torch.manual_seed(seed)
        x, weight, bias = torch.randn(32, 256, 7, 7), torch.rand(256), torch.randn(256)
        shape = (1, 256, 1, 1)
        one = torch.addcmul(bias.view(shape), x, weight.view(shape)).relu()
        other = ((x + (bias / weight).view(shape)) * weight.view(shape)).relu()
        expected = expect(one, is_scaled=True, memory=HostMemory())
        assert matches(other, expected, Tolerance(rtol=2e-6, atol=2e-6))
