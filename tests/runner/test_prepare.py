"""What `prepare` makes is made once for each seed's weights; every run and timed call uses it."""

import numpy as np
import pytest

from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import FindingKind
from tests.runner.conftest import SEEDS, draw_inputs

pytestmark = pytest.mark.sycl

KERNELS = """```sycl
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void transpose(const float* __restrict__ from, float* __restrict__ to, int rows, int cols) {
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i < rows * cols) to[i % cols * rows + i / cols] = from[i];
}
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void scale(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ out,
           int count) {
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i < count) out[i] = x[i] * w[i];
}
```
"""

BY_KERNEL = """
def prepare(weight):
    rows, cols = weight.shape
    turned = empty((cols, rows), float32)
    transpose[cdiv(rows * cols, 64), 64](weight, turned, rows, cols)

def launch(x, turned, out):
    scale[cdiv(x.numel(), 64), 64](x, turned, out, x.numel())
"""

BY_LIBRARY = """
def prepare(weight, other):
    turned = ops.matmul(weight, other)

def launch(x, turned, out):
    scale[cdiv(x.numel(), 64), 64](x, turned, out, x.numel())
"""

CASES = {
    "kernel": (
        BY_KERNEL,
        {"x": (6, 5), "weight": (5, 6), "out": (6, 5)},
        lambda array: array("x") * array("weight").T,
    ),
    "library call": (
        BY_LIBRARY,
        {"x": (5, 5), "weight": (5, 6), "other": (6, 5), "out": (5, 5)},
        lambda array: array("x") * (array("weight") @ array("other")),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_seed_has_its_own_prepared_weights(sycl, case):
    """Runs and timed calls are right on every seed."""
    plan, shapes, expected = CASES[case]
    candidate = sycl.load(
        f"{KERNELS}\n```python{plan}```\n", draw_inputs(**shapes), library_ops=("matmul",)
    )
    assert candidate.loaded.workloads[0].prepared_bytes > 0
    candidate.run()

    def wanted(seed: int) -> np.ndarray:
        return expected(lambda name: candidate.inputs.array(seed, name))

    for seed in range(SEEDS):
        for slot in range(3):
            found = candidate.inputs.array(seed, "out", slot)
            np.testing.assert_allclose(found, wanted(seed), rtol=1e-5, atol=1e-5)
    candidate.fill_pool()
    for redraw_key in (0, 7):
        timed = candidate.time(redraw_key=redraw_key)
        for kept in timed.kept:
            found = candidate.kept(kept)
            np.testing.assert_allclose(found, wanted(kept.seed), rtol=1e-5, atol=1e-5)
        # Where inputs stay, what was prepared of them does.
        assert len(timed.prepare_ns) == (len(timed.samples_ns) if redraw_key else 0)
    assert min(timed.prepare_ns) > 0
    assert candidate.step_times().library_ns == 0


def test_prepare_runs_even_when_the_kernels_of_launch_are_left_out(sycl):
    """It is not what a decoy could hide behind, and the output stays as it was."""
    plan, shapes, _ = CASES["kernel"]
    candidate = sycl.load(f"{KERNELS}\n```python{plan}```\n", draw_inputs(**shapes))
    candidate.run(without_kernels=True)
    assert np.isnan(candidate.inputs.array(0, "out", 0)).all()


def test_prepare_may_not_read_inputs(sycl):
    """The plan is refused at bind."""
    plan = BY_KERNEL.replace("weight", "x")
    shapes = {"x": (5, 6), "out": (6, 5)}
    candidate = sycl.load(f"{KERNELS}\n```python{plan}```\n", draw_inputs(**shapes))
    assert candidate.loaded.outcome is EvaluationOutcome.PLAN_ERROR


def test_what_is_prepared_stays_as_it_is(sycl):
    """A kernel that casts const away leaves nothing behind for its next call."""
    kernels = KERNELS.replace(
        "if (i < count) out[i] = x[i] * w[i];",
        "if (i < count) { out[i] = x[i] * w[i]; const_cast<float*>(w)[i] = x[i]; }",
    )
    plan, shapes, _ = CASES["kernel"]
    candidate = sycl.load(f"{kernels}\n```python{plan}```\n", draw_inputs(**shapes))
    failed = candidate.run()
    assert failed.outcome is EvaluationOutcome.WRONG_RESULT
    assert failed.findings[0].kind is FindingKind.INPUT_MODIFIED
