"""Workloads that differ in a flag and a number and count by their weights, and a task's check."""

import math

import pytest

from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.task import Scalar, Task, Workload, is_scalar

_REFERENCE = """
import torch
from torch import nn

ROWS = 64
COLS = 96
CLAMPED = False
SLOPE = 0.5


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.clamped = CLAMPED
        self.slope = SLOPE

    def forward(self, x):
        y = x * self.slope
        return torch.relu(y) if self.clamped else y


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def no_negative_zeros(inputs, expected, actual):
    out = actual[0]
    return "a zero is negative" if ((out == 0) & out.signbit()).any() else None
"""

_TASK = Task(
    name="sloped",
    reference=_REFERENCE,
    check="no_negative_zeros",
    workloads=(
        Workload(name="default", weight=3.0),
        Workload(
            name="CLAMPED=True,SLOPE=-2.0",
            scalars=(Scalar(name="CLAMPED", text="True"), Scalar(name="SLOPE", text="-2.0")),
        ),
    ),
)

_CANDIDATE = """```sycl
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void sloped(const float* __restrict__ x, float* __restrict__ out, int count, float slope) {
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i >= count) return;
  const float y = x[i] * slope;
  out[i] = CLAMP ? sycl::fmax(y, 0.0f) : y;
}
```

```python
CONST = {"CLAMP": "clamped"}

def launch(x, slope, out):
    rows, cols = x.shape
    sloped[cdiv(rows * cols, 64), 64](x, out, rows * cols, slope)
```
"""


def test_a_candidate_has_to_follow_them_and_its_speed_up_is_weighted(judged) -> None:
    verdict = judged(_CANDIDATE, task=_TASK)
    assert verdict.passed, verdict.findings
    timed = [w for w in verdict.workloads if not w.held_out]
    assert [w.weight for w in timed] == [3.0, 1.0]
    first, second = (math.log(w.speedup) for w in timed)
    assert verdict.speedup == pytest.approx(math.exp(0.75 * first + 0.25 * second))

    ignoring = _CANDIDATE.replace("CLAMP ? sycl::fmax(y, 0.0f) : y", "y")
    wrong = judged(ignoring.replace('CONST = {"CLAMP": "clamped"}\n', ""), task=_TASK)
    assert wrong.outcome is EvaluationOutcome.WRONG_RESULT


def test_what_the_tasks_check_says_is_a_wrong_result(judged) -> None:
    negative = _CANDIDATE.replace("sycl::fmax(y, 0.0f)", "(y > 0.0f ? y : -0.0f)")
    verdict = judged(negative, task=_TASK)
    assert verdict.outcome is EvaluationOutcome.WRONG_RESULT
    assert verdict.findings[0].message.endswith(
        "no_negative_zeros() refuses the outputs: a zero is negative"
    )


def test_a_number_with_a_point_may_be_as_large_as_it_can_be_written() -> None:
    """An integer has to fit into 64 bits."""
    assert Scalar(name="MASK", text="-1e30").value == -1e30
    for text in ("1e400", str(2**63), "9" * 190):
        with pytest.raises(ValueError, match="scalar MASK"):
            Scalar(name="MASK", text=text)
    assert not is_scalar(10**400)
    assert not is_scalar(math.nan)
