"""Plans with library calls and `prepare`, judged from text to verdict."""

import asyncio
import dataclasses

import pytest

from evaluator_svc.evaluator import LocalEvaluator
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.request import EvaluationLimits, EvaluationRequest
from kernel_foundry.domain.task import Task, Workload
from kernel_foundry.plan.candidate_text import split

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
COPIES = KERNELS.replace(
    "```\n",
    """extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void copy(const float* from, float* to, int count, float factor) {
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i < count) to[i] = from[i] * factor;
}
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void copy_and_spoil(float* from, float* to, int count) {
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i < count) to[i] = from[i];
  if (i == 0) from[i] = 0.0f;
}
```
""",
)
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
    return f"{COPIES}\n```python{plan}```\n"


@pytest.fixture
def verdict(judged):
    """Return the verdict on a plan with these kernels."""

    def evaluate(plan: str, task: Task = TASK):
        evaluator: LocalEvaluator = judged.evaluator
        request = EvaluationRequest(
            task=task, device=judged.device, source=split(_text(plan)), limits=LIMITS
        )
        return asyncio.run(evaluator.evaluate(request))

    return evaluate


def test_a_library_call_with_a_kernel_of_its_own_passes(verdict):
    """The share of the time in own kernels is told."""
    evaluation = verdict(LINEAR)
    assert evaluation.passed, evaluation.findings
    workload = evaluation.workloads[0]
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


COPIED = {
    "the result": """
    y = ops.linear(x, linear_weight, linear_bias)
    copy[32, 64](y, out, y.numel(), 1.0)
""",
    "the result, spoilt afterwards": """
    y = ops.linear(x, linear_weight, linear_bias)
    copy_and_spoil[32, 64](y, out, y.numel())
""",
    "the result, changed a little": """
    y = ops.linear(x, linear_weight, linear_bias)
    copy[32, 64](y, out, y.numel(), 1.0000002)
""",
    "operand and result, with another factor and back": """
    twice = empty(x.shape, float32)
    copy[48, 64](x, twice, x.numel(), -1.0)
    flipped = empty(linear_weight.shape, float32)
    copy[96, 64](linear_weight, flipped, linear_weight.numel(), -1.0)
    y = ops.linear(twice, flipped, linear_bias)
    copy[32, 64](y, out, y.numel(), 1.0)
""",
}
"""What stands for kernels that do nothing: copies in their place give the same."""


@pytest.mark.parametrize("what", COPIED)
def test_a_kernel_that_copies_a_library_result_is_found_out(verdict, what):
    """Without the kernel the output is not written, and still all of it is the library's."""
    reference = TASK.reference.replace("torch.relu(self.linear(x))", "self.linear(x) + 0.0")
    plan = f"\ndef launch(x, linear_weight, linear_bias, out):{COPIED[what]}"
    evaluation = verdict(plan, dataclasses.replace(TASK, name="linear", reference=reference))
    assert evaluation.outcome is EvaluationOutcome.REJECTED, evaluation.findings
    assert FindingKind.DECOY in [f.kind for f in evaluation.findings]


MOVED = {
    "changed where it lies, then moved": (
        "torch.relu(self.linear(x))",
        """
    y = ops.linear(x, linear_weight, linear_bias)
    relu[cdiv(y.numel(), 64), 64](y, y, y.numel())
    copy[cdiv(y.numel(), 64), 64](y, out, y.numel(), 1.0)
""",
    ),
    "computed from what a kernel has changed, then moved": (
        "self.linear(torch.relu(x))",
        """
    positive = empty(x.shape, float32)
    relu[cdiv(x.numel(), 64), 64](x, positive, x.numel())
    y = ops.linear(positive, linear_weight, linear_bias)
    copy[cdiv(y.numel(), 64), 64](y, out, y.numel(), 1.0)
""",
    ),
}
"""Outputs that are equal to a library's result in the end, and honest."""


@pytest.mark.parametrize("how", MOVED)
def test_a_kernel_may_move_what_another_one_had_a_part_in(verdict, how):
    """That it only copies does not make the plan a decoy."""
    forward, body = MOVED[how]
    reference = TASK.reference.replace("torch.relu(self.linear(x))", forward)
    task = dataclasses.replace(TASK, name="moved", reference=reference)
    evaluation = verdict(f"\ndef launch(x, linear_weight, linear_bias, out):{body}", task)
    assert evaluation.passed, evaluation.findings
