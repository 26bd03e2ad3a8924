"""Library calls give torch's results among the candidate's launches, and are timed with them."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from evaluator_svc.messages.runner import WithoutKernels
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import FindingKind
from tests.runner.conftest import SEEDS, draw_inputs

pytestmark = pytest.mark.sycl

KERNEL = """```sycl
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void relu(const float* __restrict__ y, float* __restrict__ out, int count) {
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i < count) out[i] = sycl::fmax(y[i], 0.0f);
}
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void put(float* y, int at) { y[at] = 1.0f; }
```
"""


def _text(plan: str) -> str:
    return f"{KERNEL}\n```python\n{plan}```\n"


_RELU = "    relu[cdiv(y.numel(), 64), 64](y, out, y.numel())\n"


def _tensor(draw, seed, name):
    return torch.from_numpy(draw.array(seed, name).copy())


CASES = {
    "linear": (
        "def launch(x, weight, bias, out):\n    y = ops.linear(x, weight, bias)\n" + _RELU,
        {"x": (5, 48), "weight": (33, 48), "bias": (33,), "out": (5, 33)},
        lambda t: functional.linear(t("x"), t("weight"), t("bias")),
    ),
    "convolution": (
        "def launch(x, weight, out):\n"
        "    y = ops.conv2d(x, weight, stride=2, padding=(1, 1))\n" + _RELU,
        {"x": (2, 3, 17, 16), "weight": (4, 3, 3, 3), "out": (2, 4, 9, 8)},
        lambda t: functional.conv2d(t("x"), t("weight"), stride=2, padding=1),
    ),
    "attention": (
        "def launch(x, x1, x2, out):\n"
        "    y = ops.scaled_dot_product_attention(x, x1, x2, is_causal=True)\n" + _RELU,
        {"x": (2, 2, 7, 8), "x1": (2, 2, 7, 8), "x2": (2, 2, 7, 8), "out": (2, 2, 7, 8)},
        lambda t: functional.scaled_dot_product_attention(t("x"), t("x1"), t("x2"), is_causal=True),
    ),
    "out": (
        "def launch(x, weight, out):\n"
        "    y = empty((5, 33), float32)\n"
        "    ops.linear(x, weight, out=y)\n" + _RELU,
        {"x": (5, 48), "weight": (33, 48), "out": (5, 33)},
        lambda t: functional.linear(t("x"), t("weight")),
    ),
    "out of several rows each": (
        "def launch(x, weight, bias, out):\n"
        "    y = empty((2, 3, 33), float32)\n"
        "    ops.linear(x, weight, bias, out=y)\n" + _RELU,
        {"x": (2, 3, 48), "weight": (33, 48), "bias": (33,), "out": (2, 3, 33)},
        lambda t: functional.linear(t("x"), t("weight"), t("bias")),
    ),
    "out of a single row": (
        "def launch(x, weight, bias, out):\n"
        "    y = empty(33, float32)\n"
        "    ops.linear(x, weight, bias, out=y)\n" + _RELU,
        {"x": (48,), "weight": (33, 48), "bias": (33,), "out": (33,)},
        lambda t: functional.linear(t("x"), t("weight"), t("bias")),
    ),
    "a chain of results": (
        "def launch(x, weight, out):\n"
        "    half = ops.linear(x, weight)\n"
        "    y = ops.matmul(half, half)\n" + _RELU,
        {"x": (33, 48), "weight": (33, 48), "out": (33, 33)},
        lambda t: functional.linear(t("x"), t("weight")) @ functional.linear(t("x"), t("weight")),
    ),
}
OPS = ("linear", "matmul", "conv2d", "scaled_dot_product_attention")


@pytest.mark.parametrize("case", CASES)
def test_calls_and_launches_work_together(sycl, case):
    """Every slot of every seed holds torch's result after the kernel."""
    plan, shapes, expected = CASES[case]
    candidate = sycl.load(_text(plan), draw_inputs(**shapes), library_ops=OPS)
    assert candidate.loaded.workloads[0].library_call_count >= 1
    candidate.run()
    for seed in range(SEEDS):
        wanted = expected(lambda name, seed=seed: _tensor(candidate.inputs, seed, name)).relu()
        for slot in range(3):
            found = candidate.inputs.array(seed, "out", slot)
            np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-4, atol=1e-5)


def test_times_and_share_are_of_the_whole(sycl):
    """Kept outputs are right, and both parts of the time are there."""
    plan, shapes, expected = CASES["linear"]
    candidate = sycl.load(_text(plan), draw_inputs(**shapes), library_ops=OPS)
    candidate.run()
    assert candidate.fill_pool().set_count >= 2
    timed = candidate.time()
    assert timed.samples_ns
    assert len(timed.kept) == 2
    for kept in timed.kept:
        wanted = expected(lambda n, s=kept.seed: _tensor(candidate.inputs, s, n)).relu()
        np.testing.assert_allclose(candidate.kept(kept), wanted.numpy(), rtol=1e-4, atol=1e-5)
    times = candidate.step_times()
    assert times.own_ns > 0
    assert times.library_ns > 0


def test_copies_take_the_place_of_kernels(sycl):
    """The output is the library's own result, of every seed; the run after it is whole."""
    plan, shapes, expected = CASES["linear"]
    candidate = sycl.load(_text(plan), draw_inputs(**shapes), library_ops=OPS)
    assert candidate.run(without_kernels=True) == WithoutKernels(choice_count=1)
    for seed in range(SEEDS):
        library = expected(lambda name, seed=seed: _tensor(candidate.inputs, seed, name))
        found = candidate.inputs.array(seed, "out", 0)
        np.testing.assert_allclose(found, library.numpy(), rtol=1e-4, atol=1e-5)
        assert (found < 0).any()
    candidate.run()
    assert (candidate.inputs.array(0, "out", 0) >= 0).all()


def test_a_decoy_is_what_is_left_without_kernels(sycl):
    """A call that writes the output itself does so without any kernel."""
    plan = (
        "def launch(x, weight, out):\n"
        "    y = empty((5, 33), float32)\n"
        "    relu[1, 64](weight, y, 1)\n"
        "    z = ops.linear(x, weight)\n"
        "    relu[1, 64](z, y, 1)\n"
        "    ops.addmm(y, x, weight, beta=0, out=out)\n"
    )
    shapes = {"x": (5, 48), "weight": (33, 48), "out": (5, 33)}
    text = _text(plan.replace("ops.addmm(y, x, weight,", "ops.addmm(y, x, wide,"))
    text = text.replace("(x, weight, out):", "(x, weight, wide, out):")
    candidate = sycl.load(
        text, draw_inputs(**shapes, wide=(48, 33)), library_ops=("linear", "addmm")
    )
    assert candidate.loaded.workloads[0].launch_count == 2, candidate.loaded
    candidate.run(without_kernels=True)
    wanted = _tensor(candidate.inputs, 0, "x") @ _tensor(candidate.inputs, 0, "wide")
    found = candidate.inputs.array(0, "out", 0)
    np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-4, atol=1e-4)


def test_a_call_that_the_task_does_not_allow_is_a_plan_error(sycl):
    plan, shapes, _ = CASES["linear"]
    candidate = sycl.load(_text(plan), draw_inputs(**shapes), library_ops=("conv2d",))
    assert candidate.loaded.outcome is EvaluationOutcome.PLAN_ERROR
    assert candidate.loaded.findings[0].line == 2


def test_the_runner_is_locked_in_and_says_why_without_bubblewrap(sycl):
    plan, shapes, _ = CASES["linear"]
    isolation = sycl.load(_text(plan), draw_inputs(**shapes), library_ops=OPS).ready.isolation
    assert {"landlock", "seccomp"} <= set(isolation.mechanisms)
    assert any("bubblewrap: not around a forked runner" in m for m in isolation.missing)


@pytest.mark.parametrize("at", [-1, 5 * 33])
def test_a_write_around_a_result_is_found(sycl, at):
    """It lies in memory of the plan, with guards and closed pages around it."""
    plan, shapes, _ = CASES["linear"]
    beyond = plan.replace(_RELU, f"    put[1, 1](y, {at})\n" + _RELU)
    failed = sycl.load(_text(beyond), draw_inputs(**shapes), library_ops=OPS).run()
    assert failed.outcome is EvaluationOutcome.WRONG_RESULT, failed
    assert failed.findings[0].kind is FindingKind.STRAY_WRITE
    assert "result0" in failed.findings[0].message
