"""Foreign kernels on a GPU: Triton and inline CUDA pass, tricks that only a GPU offers do not."""

import shutil
from collections.abc import Callable

import pytest

from evaluator_svc.evaluator import LocalEvaluator
from kernel_foundry.domain.check import CheckKind, Trust
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.domain.foreign import ForeignRequest
from kernel_foundry.domain.request import EvaluationLimits
from kernel_foundry.domain.task import Task
from kernel_foundry.sdk.foreign_file import python_of
from tests.foreign.candidates import HONEST, TASK, model

pytestmark = pytest.mark.gpu

_LIMITS = EvaluationLimits(build_seconds=180.0, run_seconds=120.0, timing_seconds=0.05)

_TRITON = model(
    "out, scale = torch.empty_like(x), torch.empty(x.shape[0], 1, device=x.device)\n"
    "block = triton.next_power_of_2(x.shape[1])\n"
    "scaled[(x.shape[0],)](x, self.weight, out, scale, x.shape[1], self.eps, BLOCK=block)\n"
    "return out, scale",
    before="""
import triton
import triton.language as tl

@triton.jit
def scaled(x, weight, out, scale, cols, eps, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < cols
    values = tl.load(x + row * cols + at, mask=inside, other=0.0)
    factor = 1.0 / tl.sqrt(tl.sum(values * values) / cols + eps)
    tl.store(scale + row, factor)
    kept = tl.load(weight + at, mask=inside, other=0.0)
    tl.store(out + row * cols + at, values * factor * kept, mask=inside)
""",
)

# Without torch's headers, which take the compiler half a minute.
_INLINE_CUDA = model(
    "out, scale = torch.empty_like(x), torch.empty(x.shape[0], 1, device=x.device)\n"
    "at = [ctypes.c_void_p(t.data_ptr()) for t in (x, self.weight, out, scale)]\n"
    "stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)\n"
    "library.scaled(*at, *map(ctypes.c_int, x.shape), ctypes.c_float(self.eps), stream)\n"
    "return out, scale",
    before="""
import ctypes
from torch.utils.cpp_extension import load_inline

SOURCE = r'''
#include <cuda_runtime.h>
__global__ void kernel(const float* x, const float* weight, float* out, float* scale, int cols,
                       float eps) {
  __shared__ float sums[256];
  x += size_t(blockIdx.x) * cols; out += size_t(blockIdx.x) * cols;
  float sum = 0;
  for (int i = threadIdx.x; i < cols; i += 256) sum += x[i] * x[i];
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int step = 128; step; step /= 2) {
    if (threadIdx.x < step) sums[threadIdx.x] += sums[threadIdx.x + step];
    __syncthreads();
  }
  const float factor = 1.0f / sqrtf(sums[0] / cols + eps);
  if (!threadIdx.x) scale[blockIdx.x] = factor;
  for (int i = threadIdx.x; i < cols; i += 256) out[i] = x[i] * factor * weight[i];
}
extern "C" void scaled(const float* x, const float* weight, float* out, float* scale, int rows,
                       int cols, float eps, void* stream) {
  kernel<<<rows, 256, 0, (cudaStream_t)stream>>>(x, weight, out, scale, cols, eps);
}
'''
library = ctypes.CDLL(load_inline(
    name="scaled", cpp_sources="", cuda_sources=SOURCE, is_python_module=False,
    no_implicit_headers=True,
))
""",
)

_TRICKS = {
    "work goes on in another stream": (
        model(
            "out, scale = torch.zeros_like(x), torch.zeros(x.shape[0], 1, device=x.device)\n"
            "side.wait_stream(torch.cuda.current_stream())\n"
            "with torch.cuda.stream(side):\n"
            "    torch.cuda._sleep(40_000_000)\n"
            "    for into, new in zip((out, scale), self.right(x)): into.copy_(new)\n"
            "return out, scale",
            before="side = torch.cuda.Stream()",
        ),
        ("rejected", "wrong_result", "nondeterministic"),
    ),
    "a graph is replayed on what was captured": (
        model(
            "if self.graph is None:\n"
            "    self.right(x)\n"
            "    torch.cuda.synchronize()\n"
            "    self.graph, self.kept = torch.cuda.CUDAGraph(), x.clone()\n"
            "    with torch.cuda.graph(self.graph): self.made = self.right(self.kept)\n"
            "self.graph.replay()\n"
            "return tuple(t.clone() for t in self.made)",
            init="self.graph = None",
        ),
        ("wrong_result",),
    ),
    "TF32 is switched on": (
        model(
            "return self.right(x)",
            before="torch.backends.cuda.matmul.allow_tf32 = True",
        ),
        ("rejected",),
    ),
    "events tell no time": (
        model(
            "return self.right(x)",
            before="torch.cuda.Event.elapsed_time = lambda *_: 0.0",
        ),
        ("rejected",),
    ),
}


@pytest.fixture
def judge(local_evaluator: Callable[[str], LocalEvaluator]):  # type: ignore[no-untyped-def]
    """Return what judges a foreign kernel on the GPU."""

    async def judged(text: str) -> Evaluation:
        task = Task(name="scaled", reference=TASK)
        source = python_of(text, "kernel.py")
        request = ForeignRequest(task=task, device="", source=source, limits=_LIMITS)
        return await local_evaluator("cuda").evaluate_foreign(request)

    return judged


def _said(verdict: Evaluation) -> str:
    return "; ".join(f"{f.message} {f.evidence}" for f in verdict.findings)


def _check_passed(verdict: Evaluation) -> None:
    assert verdict.passed, _said(verdict)
    assert verdict.trust is Trust.FOREIGN
    assert [c for c in verdict.checks if c.kind is CheckKind.FOREIGN_CODE]


async def test_plain_pytorch_passes(judge) -> None:  # type: ignore[no-untyped-def]
    _check_passed(await judge(HONEST["a plain rewrite"]))


async def test_triton_passes(judge) -> None:  # type: ignore[no-untyped-def]
    """Its compiler needs a cache, a C compiler and the driver's header, all within the lock."""
    pytest.importorskip("triton")
    if shutil.which("gcc") is None and shutil.which("cc") is None:
        pytest.skip("cc: not on PATH")
    _check_passed(await judge(_TRITON))


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc: not on PATH")
async def test_inline_cuda_passes(judge) -> None:  # type: ignore[no-untyped-def]
    _check_passed(await judge(_INLINE_CUDA))


@pytest.mark.parametrize("name", _TRICKS)
async def test_a_trick_is_refused(judge, name: str) -> None:  # type: ignore[no-untyped-def]
    text, outcomes = _TRICKS[name]
    verdict = await judge(text)
    assert verdict.outcome.value in outcomes, _said(verdict)
    assert verdict.findings
