"""A real verdict on the gradient of a module: by its input and by its parameter."""

from pathlib import Path

from kernel_foundry.domain.check import Trust
from kernel_foundry.domain.evaluation import EvaluationOutcome
from kernel_foundry.sdk.task_file import read_task

_FORWARD = """
import torch
from torch import nn

ROWS = 32
COLS = 96


class Model(nn.Module):
    def __init__(self, cols):
        super(Model, self).__init__()
        self.weight = nn.Parameter(torch.ones(cols))

    def forward(self, x):
        return torch.tanh(x) * self.weight


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return [COLS]
"""
_KERNELS = """```sycl
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void by_input(const float* __restrict__ x, const float* __restrict__ weight,
              const float* __restrict__ grad, float* __restrict__ out, int count, int cols) {
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i >= count) return;
  const float t = sycl::tanh(x[i]);
  out[i] = grad[i] * weight[i % cols] * (1.0f - t * t);
}

extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void by_weight(const float* __restrict__ x, const float* __restrict__ grad,
               float* __restrict__ out, int rows, int cols) {
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
    by_input[cdiv(rows * cols, 64), 64](x, weight, grad_out, out0, rows * cols, cols)
    by_weight[cdiv(cols, 32), 32](x, grad_out, out1, rows, cols)
```
"""


def test_a_gradient_is_a_task_as_any_other(judged, tmp_path: Path) -> None:
    (tmp_path / "scaled_tanh.py").write_text(_FORWARD)
    (tmp_path / "scaled_tanh.task.yaml").write_text(
        "backward: true\nworkloads: [{}, {ROWS: 3, COLS: 33, held_out: true}]\n"
    )
    task = read_task(tmp_path / "scaled_tanh.py")
    evaluation = judged(_KERNELS, task=task)
    assert evaluation.passed, evaluation.findings
    assert evaluation.trust is Trust.FULL
    forgetful = judged(_KERNELS.replace("(1.0f - t * t)", "t"), task=task)
    assert forgetful.outcome is EvaluationOutcome.WRONG_RESULT
