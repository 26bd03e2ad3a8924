"""How well a time repeats over fresh runners, and how it agrees with Nsight Compute.

Five kernels from 5 µs to 5 ms, each measured many times, every time in a runner of its own.
Run on a GPU host: python -m benchmarks.repeatability [--times 20] [--out FILE]
"""

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.result_file import out_option, write_result
from kernel_foundry.client import Foundry, connect
from kernel_foundry.domain.evaluation import Evaluation
from kernel_foundry.task_file import read_task

NAME = "repeatability"

POINTWISE = """\
```cuda
extern "C" __global__ void scale(const float4* __restrict__ x, float4* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 v = x[i];
  v.x = fmaxf(v.x, 0.f) * 2.f; v.y = fmaxf(v.y, 0.f) * 2.f;
  v.z = fmaxf(v.z, 0.f) * 2.f; v.w = fmaxf(v.w, 0.f) * 2.f;
  out[i] = v;
}
```
```python
def launch(x, out):
    require(x.numel() % 4 == 0)
    n = x.numel() // 4
    scale[cdiv(n, 256), 256](x, out, n)
```
"""

ITERATED = """\
```cuda
extern "C" __global__ void iterate(const float* __restrict__ x, float* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  const float step = x[i] * 2e-5f;
  for (int k = 0; k < 10000; ++k) v = v * 0.99999f + step;
  out[i] = v;
}
```
```python
def launch(x, out):
    iterate[cdiv(x.numel(), 256), 256](x, out, x.numel())
```
"""

POINTWISE_TASK = """\
import torch
from torch import nn

n = {n}


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2.0


def get_inputs():
    return [torch.randn(n)]


def get_init_inputs():
    return []
"""

ITERATED_TASK = POINTWISE_TASK.replace(
    "return torch.relu(x) * 2.0",
    "return x * (2.0 - 0.99999**10000)",
)

KERNELS = (
    ("pointwise 1.5 Mi floats", POINTWISE_TASK, 3 << 19, POINTWISE),
    ("pointwise 8 Mi floats", POINTWISE_TASK, 1 << 23, POINTWISE),
    ("pointwise 64 Mi floats", POINTWISE_TASK, 1 << 26, POINTWISE),
    ("pointwise 512 Mi floats", POINTWISE_TASK, 1 << 29, POINTWISE),
    ("iterated 16 Mi floats", ITERATED_TASK, 1 << 24, ITERATED),
)


def measure(foundry: Foundry, folder: Path, kernel: tuple[str, str, int, str], times: int) -> Any:
    """Return the medians and means of one kernel, and what Nsight Compute says."""
    name, text, size, candidate = kernel
    task_file = folder / f"{name.replace(' ', '_')}.py"
    task_file.write_text(text.format(n=size))
    # Ten thousand roundings in a row are more than the derived tolerance expects.
    task_file.with_suffix(".task.yaml").write_text("tolerance: {rtol: 1.0e-3, atol: 1.0e-6}\n")
    task = read_task(task_file)
    verdicts = [foundry.evaluate(task, candidate, device="cuda:0") for _ in range(times)]
    for verdict in verdicts:
        assert verdict.passed, (name, verdict.outcome, verdict.findings)
    timings = [verdict.workloads[0].timing for verdict in verdicts]
    medians = sorted(t.median_ns for t in timings if t is not None)
    means = [statistics.fmean(t.samples_ns) for t in timings if t is not None]
    profiled = foundry.evaluate(
        task, candidate, device="cuda:0", fresh_baselines=True, use_tools=True
    )
    ncu_ns = _ncu_duration_ns(profiled)
    median = statistics.median(medians)
    low, high = (medians[round(q * (len(medians) - 1))] for q in (0.05, 0.95))
    return {
        "kernel": name,
        "medians_ns": medians,
        "means_ns": means,
        "median_ns": median,
        "spread": (high - low) / median,
        "ncu_ns": ncu_ns,
        "mean_over_ncu": statistics.fmean(means) / ncu_ns if ncu_ns else None,
        "samples_each": [len(t.samples_ns) for t in timings if t is not None],
        "discarded": sum(t.discarded_count for t in timings if t is not None),
    }


def _ncu_duration_ns(verdict: Evaluation) -> float | None:
    for finding in verdict.findings:
        for evidence in finding.evidence:
            if evidence.name == "gpu_time_ns":
                return evidence.value
    return None


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20, help="measurements of each kernel")
    out_option(parser, NAME)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, connect() as foundry:
        device = next(d for d in foundry.capabilities().devices if d.id == "cuda:0")
        rows = [measure(foundry, Path(folder), kernel, options.times) for kernel in KERNELS]
    write_result(options.out, NAME, device, {"kernels": rows})
    for row in rows:
        print({k: v for k, v in row.items() if k not in ("medians_ns", "means_ns")})


if __name__ == "__main__":
    main()
