"""One small winner for all tests here: judged and built by the shared evaluator, on the CPU."""

import asyncio
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from evaluator_svc.evaluator import LocalEvaluator
from evaluator_svc.exported_form.start import try_exported_form
from evaluator_svc.settings import EvaluatorSettings
from kernel_foundry.domain.request import EvaluationRequest
from kernel_foundry.domain.task import Size, Task, Workload
from kernel_foundry.evidence.record import record_of
from kernel_foundry.exported_form import FormEntry, FormReport, FormRequest
from kernel_foundry.plan.candidate_text import split
from kernel_foundry.sdk.export.export import form_workloads
from kernel_foundry.sdk.export.torch_file import torch_file
from kernel_foundry.sdk.export.winner import Winner

REFERENCE = """\
import torch
from torch import nn

rows = 64
inner = 48
outer = 40
factor = 2.0


class Model(nn.Module):
    def __init__(self, inner, outer, factor):
        super().__init__()
        self.linear = nn.Linear(inner, outer)
        self.factor = factor

    def forward(self, x):
        return self.linear(x) * self.factor


def get_inputs():
    return [torch.randn(rows, inner)]


def get_init_inputs():
    return [inner, outer, factor]
"""
CANDIDATE = """\
```sycl
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<2>))
void turn(const float* w, float* turned, int rows, int cols) {
  auto it = syclext::this_work_item::get_nd_item<2>();
  const int col = it.get_global_id(1), row = it.get_global_id(0);
  if (row < rows && col < cols) turned[col * rows + row] = w[row * cols + col];
}

extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void product(const float* x, const float* turned, const float* b, float* out, int rows,
             float factor, sycl::local_accessor<float, 1> line) {
  auto it = syclext::this_work_item::get_nd_item<1>();
  const int row = it.get_group(0), lane = it.get_local_id(0);
  for (int i = lane; i < INNER; i += WG) line[i] = x[row * INNER + i];
  sycl::group_barrier(it.get_group());
  for (int o = lane; o < OUTER; o += WG) {
    float sum = b[o];
    for (int i = 0; i < INNER; ++i) sum += line[i] * turned[i * OUTER + o];
    out[row * OUTER + o] = sum * factor;
  }
}
```
```python
TUNE = {"WG": [16, 32]}
CONST = {"INNER": "x.shape[1]", "OUTER": "linear_weight.shape[0]"}

def prepare(linear_weight):
    outer, inner = linear_weight.shape
    turned = empty((inner, outer), float32)
    turn[(cdiv(inner, 8), outer), (8, 1)](linear_weight, turned, outer, inner)

def launch(x, turned, linear_bias, factor, out):
    rows = x.shape[0]
    product[rows, WG](x, turned, linear_bias, out, rows, factor=factor, line=local(INNER, float32))
```
"""
CUDA_CANDIDATE = """\
```cuda
extern "C" __global__ void turn(const float* w, float* turned, int rows, int cols) {
  const int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
  if (col < cols) turned[col * rows + row] = w[row * cols + col];
}

extern "C" __global__ void __launch_bounds__(WG) product(
    const float* x, const float* turned, const float* b, float* out, int rows, float factor) {
  extern __shared__ float line[];
  const int row = blockIdx.x;
  for (int i = threadIdx.x; i < INNER; i += WG) line[i] = x[row * INNER + i];
  __syncthreads();
  for (int o = threadIdx.x; o < OUTER; o += WG) {
    float sum = b[o];
    for (int i = 0; i < INNER; ++i) sum += line[i] * turned[i * OUTER + o];
    out[row * OUTER + o] = sum * factor;
  }
}
```
```python
TUNE = {"WG": [32, 64]}
CONST = {"INNER": "x.shape[1]", "OUTER": "linear_weight.shape[0]"}

def prepare(linear_weight):
    outer, inner = linear_weight.shape
    turned = empty((inner, outer), float32)
    turn[(cdiv(inner, 32), outer), 32](linear_weight, turned, outer, inner)

def launch(x, turned, linear_bias, factor, out):
    rows = x.shape[0]
    product[rows, WG, INNER * 4](x, turned, linear_bias, out, rows, factor)
```
"""
TASK = Task(
    name="scaled_linear",
    reference=REFERENCE,
    workloads=(
        Workload(name="rows=64", sizes=(Size(name="rows", value=64),)),
        Workload(name="rows=3", sizes=(Size(name="rows", value=3),), held_out=True),
    ),
)


PLAIN_TASK = Task(
    name="shifted_product",
    reference="""\
import torch
from torch import nn

rows = 8
cols = 64


class Model(nn.Module):
    def forward(self, x, y):
        return x * y + 1.0


def get_inputs():
    return [torch.randn(rows, cols), torch.randn(rows, cols)]
""",
    workloads=(
        Workload(name="rows=8", sizes=(Size(name="rows", value=8),)),
        Workload(name="rows=3", sizes=(Size(name="rows", value=3),), held_out=True),
    ),
)
"""Of a module without weights."""
PLAIN_CANDIDATE = """\
```sycl
extern "C" SYCL_EXT_ONEAPI_FUNCTION_PROPERTY((syclexp::nd_range_kernel<1>))
void shifted(const float* x, const float* y, float* out, int count) {
  const int i = syclext::this_work_item::get_nd_item<1>().get_global_id(0);
  if (i < count) out[i] = x[i] * y[i] + 1.0f;
}
```
```python
def launch(x, y, out):
    shifted[cdiv(x.numel(), 32), 32](x, y, out, x.numel())
```
"""
PLAIN_CUDA_CANDIDATE = """\
```cuda
extern "C" __global__ void shifted(const float* x, const float* y, float* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = x[i] * y[i] + 1.0f;
}
```
```python
def launch(x, y, out):
    shifted[cdiv(x.numel(), 32), 32](x, y, out, x.numel())
```
"""


async def winner_of(
    evaluator: LocalEvaluator, task: Task, candidate: str, kind: str = "sycl"
) -> Winner:
    """A candidate judged on a device of a kind, with its object code."""
    request = EvaluationRequest(task=task, device=kind, source=split(candidate))
    judged = await evaluator.evaluate(request)
    assert judged.passed, judged.findings
    built = await evaluator.evaluate(replace(request, build_only=True, with_objects=True))
    assert built.compile is not None
    return Winner(
        record=record_of(task, request.source, judged),
        admission=await evaluator.admit(task, kind),
        objects=built.compile.objects,
    )


@pytest.fixture(scope="session")
def winner(local_evaluator: Callable[[str], LocalEvaluator]) -> Winner:
    return asyncio.run(winner_of(local_evaluator("sycl"), TASK, CANDIDATE))


@pytest.fixture(scope="session")
def gpu_winner(local_evaluator: Callable[[str], LocalEvaluator]) -> Winner:
    """Judged on a GPU."""
    return asyncio.run(winner_of(local_evaluator("cuda"), TASK, CUDA_CANDIDATE, "cuda"))


@pytest.fixture(scope="session")
def plain_winner(local_evaluator: Callable[[str], LocalEvaluator]) -> Winner:
    """Of a module without weights."""
    return asyncio.run(winner_of(local_evaluator("sycl"), PLAIN_TASK, PLAIN_CANDIDATE))


def built_for_gpu(winner: Winner, candidate: str, evaluator: LocalEvaluator) -> Winner:
    request = EvaluationRequest(
        task=winner.record.task,
        device="",
        source=split(candidate),
        build_only=True,
        architecture="sm_90",
        with_objects=True,
    )
    made = asyncio.run(evaluator.evaluate(request))
    assert made.compile is not None, made.findings
    assert made.compile.objects, made.findings
    name = "NVIDIA H100 80GB HBM3"
    device = replace(winner.admission.device, id="cuda:0", name=name, architecture="sm_90")
    evaluation = replace(winner.record.evaluation, configuration=made.configuration)
    return replace(
        winner,
        record=replace(winner.record, source=request.source, evaluation=evaluation),
        admission=replace(winner.admission, device=device),
        objects=made.compile.objects,
    )


@pytest.fixture(scope="session")
def plain_gpu_winner(
    plain_winner: Winner, local_evaluator: Callable[[str], LocalEvaluator]
) -> Winner:
    return built_for_gpu(plain_winner, PLAIN_CUDA_CANDIDATE, local_evaluator(""))


@pytest.fixture(scope="session")
def text(winner: Winner) -> str:
    return torch_file([winner], "fast_linear")


def tried(
    text: str, winner: Winner, entry: FormEntry = FormEntry.MODULE, *, check: str = ""
) -> FormReport:
    """What comes out of trying a file of a winner on the CPU."""
    request = FormRequest(
        text=text,
        device="cpu",
        is_scaled=True,
        workloads=form_workloads([winner]),
        entry=entry,
        check=check,
    )
    return try_exported_form(request, EvaluatorSettings())


def imported(text: str, folder: Path, name: str) -> ModuleType:
    path = folder / f"{name}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def _fast(text: str, tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return imported(text, tmp_path_factory.mktemp("export"), "fast_linear")


@pytest.fixture
def fast(_fast: ModuleType) -> ModuleType:
    """The exported file, imported; it has counted no call."""
    _fast.reset_stats()
    return _fast
