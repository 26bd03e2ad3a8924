"""Plans with library calls and `prepare`, judged from text to verdict."""

import asyncio
import dataclasses

import pytest

from evaluator_svc.evaluator import Evaluator
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.request import EvaluationLimits, EvaluationRequest
from kernel_foundry.domain.task import Task, Workload

pytestmark = pytest.mark.sycl

LIMITS = EvaluationLimits(build_seconds=20.0, run_seconds=5.0, timing_seconds=0.05)

TASK = Task(
    name="linear_relu",
    reference="""
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(96, 64)

    def forward(self, x):
        return torch.relu(self.linear(x))

def get_inputs():
    return [torch.randn(32, 96)]

def get_init_inputs():
    return []
""",
    workloads=(Workload(name="default"),),
    library_ops=("linear", "addmm"),
)

KERNELS = """```sycl
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void relu(const float* __restrict__ y, float* __restrict__ out, int count) {
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i < count) out[i] = sycl::fmax(y[i], 0.0f);
}
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void transpose(const float* __restrict__ from, float* __restrict__ to, int rows, int cols) {
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i < rows * cols) to[i % cols * rows + i / cols] = from[i];
}
```
"""
LINEAR = """
def launch(x, linear_weight, linear_bias, out):
    y = ops.linear(x, linear_weight, linear_bias)
    relu[cdiv(y.numel(), 64), 64](y, out, y.numel())
"""
PREPARED = """
def prepare(linear_weight):
    rows, cols = linear_weight.shape
    turned = empty((cols, rows), float32)
    transpose[cdiv(rows * cols, 64), 64](linear_weight, turned, rows, cols)

def launch(x, turned, linear_bias, out):
    y = ops.addmm(linear_bias, x, turned)
    relu[cdiv(y.numel(), 64), 64](y, out, y.numel())
"""


def _text(plan: str) -> str:
    return f"{KERNELS}\n```python{plan}```\n"


@pytest.fixture
def verdict(judged):
    """Return the verdict on a plan with these kernels."""

    def evaluate(plan: str, task: Task = TASK):
        evaluator: Evaluator = judged.evaluator
        request = EvaluationRequest(
            task=task, device=judged.device, text=_text(plan), limits=LIMITS
        )
        return asyncio.run(evaluator.evaluate(request))

    return evaluate


def test_a_library_call_with_a_kernel_of_its_own_passes(verdict):
    """The share of the time in own kernels is told."""
    evaluation = verdict(LINEAR)
    assert evaluation.passed, evaluation.findings
    (workload,) = evaluation.workloads
    assert 0.0 < workload.own_share < 1.0
    assert workload.prepare_ns is None


def test_prepared_weights_pass_and_their_time_is_told(verdict):
    """What `prepare` costs is not in the samples and not hidden either."""
    evaluation = verdict(PREPARED)
    assert evaluation.passed, evaluation.findings
    assert evaluation.workloads[0].prepare_ns > 0


def test_a_library_call_that_is_not_allowed_is_a_plan_error(verdict):
    """The task's list decides."""
    evaluation = verdict(LINEAR.replace("ops.linear(x, linear_weight, linear_bias)",
                                        "ops.matmul(x, linear_weight)"))  # fmt: skip
    assert evaluation.outcome is EvaluationOutcome.PLAN_ERROR
    assert FindingKind.PLAN in [f.kind for f in evaluation.findings]


def test_kernels_that_only_pretend_are_found_out(verdict):
    """The result is right without them: the library calls alone make it."""
    reference = TASK.reference.replace(
        "self.linear = nn.Linear(96, 64)", "self.weight = nn.Parameter(torch.ones(96, 64))"
    ).replace("torch.relu(self.linear(x))", "x @ self.weight")
    task = dataclasses.replace(TASK, name="product", reference=reference)
    evaluation = verdict(
        """
def launch(x, weight, out):
    y = empty((32, 64), float32)
    relu[1, 64](x, y, 1)
    ops.addmm(y, x, weight, beta=0, out=out)
""",
        task,
    )
    assert evaluation.outcome is EvaluationOutcome.REJECTED, evaluation.findings
    assert FindingKind.DECOY in [f.kind for f in evaluation.findings]


def test_a_kernel_that_copies_a_library_result_is_found_out(verdict):
    """Without the kernel the output is not written, and still all of it is the library's."""
    reference = TASK.reference.replace("torch.relu(self.linear(x))", "self.linear(x) + 0.0")
    copy = "relu[cdiv(y.numel(), 64), 64](y, out, y.numel())"
    kernel_that_copies = LINEAR.replace(copy, "transpose[32, 64](y, out, 1, y.numel())")
    evaluation = verdict(
        kernel_that_copies, dataclasses.replace(TASK, name="linear", reference=reference)
    )
    assert evaluation.outcome is EvaluationOutcome.REJECTED, evaluation.findings
    assert FindingKind.DECOY in [f.kind for f in evaluation.findings]
