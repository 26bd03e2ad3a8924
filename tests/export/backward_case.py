"""A module and its gradient, with candidates for both."""

import asyncio
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from evaluator_svc.evaluator import LocalEvaluator
from kernel_foundry.sdk.export.winner import Winner
from kernel_foundry.sdk.task_file import read_task
from tests.export.conftest import winner_of

REFERENCE = """\
import torch
from torch import nn

rows = 32
cols = 96


class Model(nn.Module):
    def __init__(self, cols):
        super(Model, self).__init__()
        self.weight = nn.Parameter(torch.ones(cols))

    def forward(self, x):
        return torch.tanh(x) * self.weight


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return [cols]
"""
WORKLOADS = "workloads: [{}, {rows: 3, held_out: true}]\n"
FORWARD = """```sycl
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void scaled(const float* x, const float* weight, float* out, int count, int cols) {
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i < count) out[i] = sycl::tanh(x[i]) * weight[i % cols];
}
```
```python
def launch(x, weight, out):
    rows, cols = x.shape
    scaled[cdiv(rows * cols, 32), 32](x, weight, out, rows * cols, cols)
```
"""
BACKWARD = """```sycl
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void by_input(const float* x, const float* weight, const float* grad, float* out, int count,
              int cols) {
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i >= count) return;
  const float t = sycl::tanh(x[i]);
  out[i] = grad[i] * weight[i % cols] * (1.0f - t * t);
}

extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void by_weight(const float* x, const float* grad, float* out, int rows, int cols) {
  const int col = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (col >= cols) return;
  float sum = 0.0f;
  for (int i = col; i < rows * cols; i += cols) sum += grad[i] * sycl::tanh(x[i]);
  out[col] = sum;
}
```
```python
def launch(x, weight, grad_out, out0, out1):
    rows, cols = x.shape
    by_input[cdiv(rows * cols, 32), 32](x, weight, grad_out, out0, rows * cols, cols)
    by_weight[cdiv(cols, 32), 32](x, grad_out, out1, rows, cols)
```
"""
CUDA_FORWARD = """```cuda
extern "C" __global__ void scaled(const float* x, const float* weight, float* out, int count,
                                  int cols) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = tanhf(x[i]) * weight[i % cols];
}
```
```python
def launch(x, weight, out):
    rows, cols = x.shape
    scaled[cdiv(rows * cols, 32), 32](x, weight, out, rows * cols, cols)
```
"""
CUDA_BACKWARD = """```cuda
extern "C" __global__ void by_input(const float* x, const float* weight, const float* grad,
                                    float* out, int count, int cols) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float t = tanhf(x[i]);
  out[i] = grad[i] * weight[i % cols] * (1.0f - t * t);
}

extern "C" __global__ void by_weight(const float* x, const float* grad, float* out, int rows,
                                     int cols) {
  const int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (col >= cols) return;
  float sum = 0.0f;
  for (int i = col; i < rows * cols; i += cols) sum += grad[i] * tanhf(x[i]);
  out[col] = sum;
}
```
```python
def launch(x, weight, grad_out, out0, out1):
    rows, cols = x.shape
    by_input[cdiv(rows * cols, 32), 32](x, weight, grad_out, out0, rows * cols, cols)
    by_weight[cdiv(cols, 32), 32](x, grad_out, out1, rows, cols)
```
"""


def judged_pair(
    evaluator: LocalEvaluator, folder: Path, forward: str, backward: str, kind: str
) -> tuple[Winner, Winner]:
    """The winners of a module and of its gradient."""
    found = []
    for name, sidecar, candidate in (
        ("scaled_tanh", WORKLOADS, forward),
        ("scaled_tanh_gradient", f"backward: true\n{WORKLOADS}", backward),
    ):
        (folder / f"{name}.py").write_text(REFERENCE)
        (folder / f"{name}.task.yaml").write_text(sidecar)
        task = read_task(folder / f"{name}.py")
        found.append(asyncio.run(winner_of(evaluator, task, candidate, kind)))
    return found[0], found[1]


def gradients(model: Any, x: torch.Tensor, by: list[torch.Tensor]) -> list[torch.Tensor]:
    """Of a loss whose gradient by the result has other numbers at all places."""
    result = model(x)
    weights = torch.linspace(-1.0, 2.0, result.numel(), device=result.device).view_as(result)
    return list(torch.autograd.grad((result * weights).sum(), by))


def check(fast: ModuleType, model: Any, x: torch.Tensor, reason: str = "") -> None:
    """Gradients are right: by kernels or, for a reason, by the reference."""
    by = [t for t in (x, model.weight) if t.requires_grad]
    for one, other in zip(
        gradients(model, x, by),
        gradients(lambda x: torch.tanh(x) * model.weight, x, by),
        strict=True,
    ):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
    stats = fast.stats()["backward"]
    assert (stats["kernel"], stats["reference"]) == ((0, 1) if reason else (1, 0)), stats
    assert reason in stats["last_reason"]
