"""What products of fewer bits cost: TF32 where a task allows it, and split operands anywhere."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from evaluator_svc.judge import Judge
from evaluator_svc.judge.admission.tolerance import granted, measure, tf32_noise
from evaluator_svc.judge.comparison.needed_factor import needed_factor
from evaluator_svc.judge.inputs.input_set import InputSet
from evaluator_svc.judge.reference.cut_operands import TF32_LOST_BITS, CutOperands
from evaluator_svc.judge.reference.tf32 import tf32_allowed
from kernel_foundry.domain.task import Task, Tolerance
from tests.judge.judge_tasks import PEAKS, SOFTMAX, make_task, prepare

PRODUCT = make_task(
    "def forward(self, a, b):\n    return a @ b",
    inputs="[torch.randn(rows, cols), torch.randn(cols, rows)]",
    rows=64,
    cols=512,
)
CONVOLUTION = make_task(
    """
def __init__(self):
    super().__init__()
    self.conv = nn.Conv2d(8, 16, 3)

def forward(self, x):
    return torch.relu(self.conv(x))
""",
    inputs="[torch.randn(2, 8, rows, cols)]",
    rows=16,
    cols=16,
)


ATTENTION = make_task(
    """
def forward(self, q, k, v):
    return torch.softmax(q @ k.mT / 4, dim=-1) @ v
""",
    inputs="[torch.randn(4, rows, cols) for _ in range(3)]",
    rows=64,
    cols=32,
)


def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    product: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
) -> torch.Tensor:
    """Return what the task computes, by another way to multiply."""
    return product(torch.softmax(product(q, k.mT) / 4, dim=-1), v)


def in_parts(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the product by a high and a low part in bfloat16 of each operand."""
    (a_high, a_low), (b_high, b_low) = (
        (t.bfloat16().float(), (t - t.bfloat16().float()).bfloat16().float()) for t in (a, b)
    )
    return a_high @ b_high + (a_high @ b_low + a_low @ b_high)


def input_set(task: Task, *, tf32: bool) -> InputSet:
    prepared = prepare(task)
    prepared.module.allows_tf32 = tf32
    return prepared.input_set(3)


def rounded(value: torch.Tensor) -> torch.Tensor:
    """Return `value` rounded to TF32, to the nearest."""
    bits = value.view(torch.int32)
    return bits.add(0x1000).bitwise_and(~0x1FFF).view(torch.float32)


@pytest.mark.parametrize("task", [PRODUCT, CONVOLUTION], ids=["product", "convolution"])
def test_the_tolerance_allows_for_tf32_where_it_is_allowed(task: Task) -> None:
    strict = granted(measure([input_set(task, tf32=False)]))
    wide = granted(measure([input_set(task, tf32=True)]))
    cost = tf32_noise(input_set(task, tf32=True))

    assert strict < cost / 2 < cost < wide < 0.02
    assert wide == pytest.approx(2 * cost, rel=0.1)


def test_a_rounded_product_is_inside_and_a_float32_one_too() -> None:
    drawn = input_set(PRODUCT, tf32=True)
    tolerance = granted(measure([drawn]))
    a, b = drawn.inputs
    expected = drawn.expected()[0]
    bound = tolerance * (expected.abs() + expected.square().mean(1, keepdim=True).sqrt())

    assert torch.equal(expected, a @ b)
    assert ((rounded(a) @ rounded(b) - expected).abs() < bound).all()
    strict = granted(measure([input_set(PRODUCT, tf32=False)]))
    assert ((rounded(a) @ rounded(b) - expected).abs() > bound * strict / tolerance).any()


def test_operands_in_two_parts_are_inside_where_their_errors_grow() -> None:
    """Scores of attention are added up in an exponent: 17 bits of each are fewer of the result."""
    drawn = input_set(ATTENTION, tf32=False)
    derivation = measure([drawn])
    expected = drawn.expected()[0]
    error = (attention(*drawn.inputs, product=in_parts) - expected).abs()
    scale = expected.abs() + expected.square().mean(-1, keepdim=True).sqrt()
    cost = float((error / scale).max())
    assert cost < granted(derivation) <= 1e-4
    assert cost / 2 < derivation.split_noise < 4 * cost
    assert derivation.safety * derivation.noise < cost


def test_unusual_values_are_granted_what_tf32_costs_there() -> None:
    """Where large terms cancel, cut operands cost more than the row's scale tells."""
    drawn = input_set(PRODUCT, tf32=True)
    tolerance = granted(measure([drawn]))
    held = Tolerance(rtol=tolerance, atol=tolerance)
    a, b = drawn.inputs
    b = b.clone()
    b[:, 0] *= 32.0
    unusual = drawn.with_inputs([a, b])
    with CutOperands(TF32_LOST_BITS):
        cut = unusual.run(dtype=torch.float32)[0]
    expected = unusual.expected()[0]
    scale = expected.abs() + expected.square().mean(-1, keepdim=True).sqrt()
    cost = float(((cut - expected).abs() / scale).max()) / tolerance

    needed = needed_factor(unusual, None, held)
    assert needed is not None
    assert needed.factor == pytest.approx(2 * cost, rel=0.1)
    unusual.module.allows_tf32 = False
    without = needed_factor(unusual, None, held)
    assert without is not None
    assert without.factor == 1.0 < needed.factor


def test_without_a_product_tf32_costs_nothing() -> None:
    task = make_task(SOFTMAX)
    assert tf32_noise(input_set(task, tf32=True)) == 0.0
    with_tf32, without = (measure([input_set(task, tf32=allowed)]) for allowed in (True, False))
    assert granted(with_tf32) == granted(without)


def test_operands_are_cut_to_ten_bits_and_a_bias_is_not() -> None:
    fine = torch.full((1, 1), 1.0 + 2**-11)
    bias = torch.tensor([2**-20])
    with CutOperands(TF32_LOST_BITS):
        assert (fine @ torch.ones(1, 1)).item() == 1.0
        linear = torch.nn.functional.linear(torch.ones(1, 1), torch.zeros(1, 1), bias)
    assert linear.item() == 2**-20
    assert (fine @ torch.ones(1, 1)).item() == fine.item()


def test_the_switch_is_for_gpus_and_is_put_back() -> None:
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = matmul.allow_tf32, cudnn.allow_tf32
    for allowed in (True, False):
        with tf32_allowed(torch.device("cuda"), allowed=allowed):
            assert (matmul.allow_tf32, cudnn.allow_tf32) == (allowed, allowed)
        assert (matmul.allow_tf32, cudnn.allow_tf32) == before
        with tf32_allowed(torch.device("cpu"), allowed=allowed):
            assert (matmul.allow_tf32, cudnn.allow_tf32) == before


@pytest.mark.parametrize("judge", ["host"], indirect=True)
def test_on_the_cpu_nothing_changes(judge: Judge) -> None:
    plain = judge.admit(PRODUCT, PEAKS)
    allowed = judge.admit(replace(PRODUCT, tf32=True), PEAKS)

    assert allowed.refusals == plain.refusals == ()
    assert allowed.tolerance == plain.tolerance
    assert allowed.workloads[0].arithmetic_unit == plain.workloads[0].arithmetic_unit
    assert allowed.task != plain.task
