"""Tasks with 8-bit floats, and degenerate ones, from text to verdict."""

from collections.abc import Callable

import pytest

from evaluator_svc.evaluator import LocalEvaluator
from kernel_foundry.domain.check import Trust
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.domain.finding import FindingKind
from kernel_foundry.domain.task import Task, Workload
from kernel_foundry.errors import TaskRefusedError
from tests.evaluator.conftest import Judged

REFERENCE = """
import torch
from torch import nn

rows = 33
cols = 70


class Model(nn.Module):
    def forward(self, x):
        return FORWARD


def get_inputs():
    return [torch.randn(rows, cols)INPUT]


def get_init_inputs():
    return []
"""

DECODED = """```sycl
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void widen(const POINTER* x, float* out, int count) {
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i < count) out[i] = 2.0f * sycl::bit_cast<half>(static_cast<uint16_t>(x[i] << 8));
}
```
```python
def launch(x, out):
    widen[cdiv(x.numel(), 64), 64](x, out, x.numel())
```
"""

CONSTANT = """```sycl
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void fill(const float* x, float* out, int count) {
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i < count) out[i] = x[i] * 0.0f + 3.0f;
}
```
```python
def launch(x, out):
    fill[cdiv(x.numel(), 64), 64](x, out, x.numel())
```
"""

NATIVE = """```cuda
#include <cuda_fp8.h>
extern "C" __global__ void scale(const __nv_fp8_FORMAT* x, __nv_fp8_FORMAT* twice, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) twice[i] = __nv_fp8_FORMAT(float(x[i]) * 2.0f);
}
extern "C" __global__ void widen(const __nv_fp8_FORMAT* x, float* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = float(x[i]);
}
```
```python
def launch(x, out):
    scratch = empty(x.shape, x.dtype)
    scale[cdiv(x.numel(), 64), 64](x, scratch, x.numel())
    widen[cdiv(x.numel(), 64), 64](scratch, out, x.numel())
```
"""


def task(forward: str, cast: str = "", *, admit_degenerate: bool = False) -> Task:
    return Task(
        name="formats",
        reference=REFERENCE.replace("FORWARD", forward).replace("INPUT", cast),
        workloads=(Workload(name="default"),),
        admit_degenerate=admit_degenerate,
    )


@pytest.fixture
def judged_on_gpu(local_evaluator: Callable[[str], LocalEvaluator]) -> Judged:
    return Judged(local_evaluator("cuda"), "cuda:0")


@pytest.mark.sycl
@pytest.mark.slow
def test_sycl_takes_8_bit_floats_as_bytes(judged: Judged) -> None:
    asked = task("x.float() * 2", ".to(torch.float8_e5m2)")
    verdict = judged(DECODED.replace("POINTER", "uint8_t"), task=asked)

    assert verdict.passed, [finding.message for finding in verdict.findings]
    assert verdict.trust is Trust.FULL


@pytest.mark.sycl
@pytest.mark.slow
def test_a_pointer_of_another_type_is_told_the_way(judged: Judged) -> None:
    asked = task("x.float() * 2", ".to(torch.float8_e5m2)")
    verdict = judged(DECODED.replace("POINTER", "uint16_t"), task=asked)

    (finding,) = (f for f in verdict.findings if f.kind is FindingKind.PLAN)
    assert "holds float8_e5m2" in finding.message
    assert "uint8_t" in finding.message


@pytest.mark.sycl
@pytest.mark.slow
def test_a_degenerate_task_is_judged_where_that_is_asked_for(judged: Judged) -> None:
    with pytest.raises(TaskRefusedError, match="the output is constant"):
        judged(CONSTANT, task=task("x * 0 + 3"))

    verdict = judged(CONSTANT, task=task("x * 0 + 3", admit_degenerate=True))
    assert verdict.passed, [finding.message for finding in verdict.findings]
    assert verdict.trust is Trust.DEGENERATE

    wrong = CONSTANT.replace("3.0f", "4.0f")
    verdict = judged(wrong, task=task("x * 0 + 3", admit_degenerate=True))
    assert not verdict.passed
    assert verdict.trust is Trust.DEGENERATE


@pytest.mark.sycl
def test_what_does_not_bind_waits_for_no_admission(judged: Judged) -> None:
    """This one would be refused."""
    verdict = judged(CONSTANT.replace("launch(", "launch(bias, "), task=task("x * 0 + 7"))
    assert verdict.outcome is EvaluationOutcome.PLAN_ERROR
    assert "bias" in verdict.findings[0].message


@pytest.mark.gpu
@pytest.mark.parametrize(("dtype", "name"), [("float8_e4m3fn", "e4m3"), ("float8_e5m2", "e5m2")])
def test_cuda_has_8_bit_floats_of_its_own(judged_on_gpu: Judged, dtype: str, name: str) -> None:
    asked = task("x.float() * 2", f".to(torch.{dtype})")
    verdict = judged_on_gpu(NATIVE.replace("FORMAT", name), task=asked)

    assert verdict.passed, [finding.message for finding in verdict.findings]


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_an_output_of_8_bit_floats_is_compared(judged_on_gpu: Judged, dtype: str) -> None:
    text = NATIVE[: NATIVE.index('extern "C" __global__ void widen')] + (
        "```\n```python\ndef launch(x, out):\n"
        "    scale[cdiv(x.numel(), 64), 64](x, out, x.numel())\n```\n"
    )
    asked = task(f"(x.float() * 2).to(torch.{dtype})", f".to(torch.{dtype})")
    name = dtype.removeprefix("float8_").removesuffix("fn")
    verdict = judged_on_gpu(text.replace("FORMAT", name), task=asked)

    assert verdict.passed, [finding.message for finding in verdict.findings]
