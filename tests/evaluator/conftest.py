"""A real evaluator on the CPU device, shared by all tests of this folder."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from evaluator_svc.evaluator import LocalEvaluator
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.request import EvaluationLimits, EvaluationRequest
from kernel_foundry.domain.task import Size, Task, Workload
from kernel_foundry.plan.candidate_text import split

LIMITS = EvaluationLimits(build_seconds=20.0, run_seconds=5.0, timing_seconds=0.05)

REFERENCE = """
import torch
from torch import nn

ROWS = 64
COLS = 96

class Model(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(cols))

    def forward(self, x):
        return torch.relu(x) * self.weight

def get_inputs():
    return [torch.randn(ROWS, COLS)]

def get_init_inputs():
    return [COLS]
"""

TASK = Task(
    name="scaled_relu",
    reference=REFERENCE,
    workloads=(
        Workload(name="default"),
        Workload(
            name="odd",
            sizes=(Size(name="ROWS", value=3), Size(name="COLS", value=101)),
            held_out=True,
        ),
    ),
)

RIGHT = """```sycl
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void scaled_relu(const float* __restrict__ x, const float* __restrict__ weight,
                 float* __restrict__ out, int count, int cols) {
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i < count) out[i] = sycl::fmax(x[i], 0.0f) * weight[i % cols];
}
```

```python
def launch(x, weight, out):
    rows, cols = x.shape
    scaled_relu[cdiv(rows * cols, 64), 64](x, weight, out, rows * cols, cols)
```
"""


class Judged:
    """An evaluator with a synchronous face.

    Args:
        evaluator: The evaluator.
        device: Id of its device.
    """

    def __init__(self, evaluator: LocalEvaluator, device: str) -> None:
        self.evaluator = evaluator
        self.device = device
        self.task = TASK
        self.right = RIGHT
        """A candidate that is right."""

    def request(self, text: str, **others: Any) -> EvaluationRequest:
        """Return the request for a verdict on a candidate's text."""
        fields = {"task": TASK, "device": self.device, "limits": LIMITS} | others
        return EvaluationRequest(source=split(text), **fields)

    def __call__(self, text: str, **others: Any) -> Evaluation:
        """Return the verdict on a candidate's text."""
        return asyncio.run(self.evaluator.evaluate(self.request(text, **others)))

    @property
    def judge_process(self) -> int:
        sites = {site.spec.id: site for site in self.evaluator._sites.working()}
        return sites[self.device].judge.facts().process_id


@pytest.fixture(scope="session")
def judged(local_evaluator: Callable[[str], LocalEvaluator]) -> Judged:
    """The evaluator that all tests use: its judge must outlive every one of them."""
    return Judged(local_evaluator("sycl"), "sycl:0")
