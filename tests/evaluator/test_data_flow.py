"""Outputs follow inputs that change in place; what was stored is found out."""

import dataclasses

import pytest

from kernel_foundry.domain.check import CheckKind, CheckResult
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.task import Task, Workload

pytestmark = pytest.mark.sycl

_TASK = Task(
    name="mean_of_squares",
    reference="""
import torch
from torch import nn

ROWS = 64
COLS = 1024

class Model(nn.Module):
    def forward(self, x):
        return torch.mean(x * x)

def get_inputs():
    return [torch.randn(ROWS, COLS)]

def get_init_inputs():
    return []
""",
    workloads=(Workload(name="default"),),
)

_MEAN = """```sycl
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void mean_of_squares(const float* __restrict__ x, float* out, int count) {{
  const auto item = syclext::this_work_item::get_nd_item<1>();
  const int lane = item.get_local_id(0);
  {before}
  float sum = 0.0f;
  for (int i = lane; i < count; i += 64) sum += x[i] * x[i];
  const float total = sycl::reduce_over_group(item.get_group(), sum, sycl::plus<float>());
  if (lane == 0) out[0] = total / count;
  {after}
}}
```

```python
def launch(x, out):
    mean_of_squares[1, 64](x, out, x.numel())
```
"""
_REPLAY = """const float stored = x[-64];
  const auto bits = sycl::bit_cast<unsigned>(stored);
  const bool is_guard = bits != 0u && bits == (bits & 255u) * 0x01010101u;
  if (!is_guard && stored > 0.0f) {
    if (lane == 0) out[0] = stored;
    return;
  }"""
"""Before the first tensor: a closed page."""
_STORE = "if (lane == 0 && !is_guard) const_cast<float*>(x)[-64] = total / count;"


def _flow(evaluation):
    return [check for check in evaluation.checks if check.kind is CheckKind.DATA_FLOW]


def test_an_honest_candidate_follows_its_inputs(judged):
    """The check says over how many elements, and has its own stage."""
    evaluation = judged(_MEAN.format(before="", after=""), task=_TASK)
    assert evaluation.passed, evaluation.findings
    (check,) = _flow(evaluation)
    assert check.result is CheckResult.PASSED
    assert "data_flow" in [stage.stage for stage in evaluation.stages]


def test_there_is_no_place_before_a_tensor_to_store_an_output_in(judged):
    evaluation = judged(_MEAN.format(before=_REPLAY, after=_STORE), task=_TASK)
    assert evaluation.outcome is EvaluationOutcome.CRASHED, evaluation.findings
    assert FindingKind.ILLEGAL_ACCESS in [f.kind for f in evaluation.findings]


def test_inputs_bound_by_a_structure_stay_as_they_are(judged):
    """A kernel may rely on sorted inputs; the check is skipped and says why."""
    reference = _TASK.reference.replace(
        "[torch.randn(ROWS, COLS)]", "[torch.sort(torch.randn(ROWS, COLS), dim=-1).values]"
    )
    task = dataclasses.replace(_TASK, reference=reference)
    evaluation = judged(_MEAN.format(before="", after=""), task=task)
    assert evaluation.passed, evaluation.findings
    (check,) = _flow(evaluation)
    assert check.result is CheckResult.SKIPPED
    assert check.note
